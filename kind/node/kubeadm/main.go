// Command kubeadm runs the Kubernetes tool of that name.
package main

import (
	"os"

	"k8s.io/kubernetes/cmd/kubeadm/app"
)

func main() {
	if err := app.Run(); err != nil {
		os.Exit(1)
	}
}
