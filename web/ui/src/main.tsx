import { render } from "preact";
import { App } from "./app.tsx";
import "./theme.ts";

render(<App />, document.getElementById("app")!);
