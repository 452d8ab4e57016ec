module github.com/rackstrap/rackstrap/deploy/tools

go 1.26.0
