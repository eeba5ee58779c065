// Command helm runs Helm.
package main

import (
	"errors"
	"log/slog"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	// The field manager of applied objects, whatever the name of this file.
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		slog.Error("cannot start", "error", err)
		os.Exit(1)
	}
	if err := root.Execute(); err != nil {
		if coded, ok := errors.AsType[cmd.CommandError](err); ok {
			os.Exit(coded.ExitCode)
		}
		os.Exit(1)
	}
}
