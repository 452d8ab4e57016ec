// Command openapi prints the OpenAPI document of the API, as the daemon serves it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/rackstrap/rackstrap/api/rest"
)

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(rest.Document("dev")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
