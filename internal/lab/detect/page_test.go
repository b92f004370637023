//go:build e2e

package detect

import (
	"fmt"
	"strings"
)

// page is docs/detection.md.
func page(found, calm []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# What the health check finds

%d faults, each injected into a simulated node that was well a moment before, and
what `+"`gpu-healthcheck`"+` says of it in enforce mode with the default policy: the check
and the code that name it, the outcome, and what is done with the node. "–" means
that nothing may be found: an application's own error, one that is contained or
cured, or a line that only looks like the driver's. Where a call hangs the answer
comes at the deadline (4 s as installed), by what had arrived until then.

Made by `+"`make detect`"+`; a test of `+"`make test`"+` fails when the programs no longer do
what stands here. Simulated: the driver's real ways of failing are more.

| fault | found by | code | outcome | action | in |
|---|---|---|---|---|---|
`, len(found))
	for _, r := range found {
		fmt.Fprintln(&b, r)
	}
	fmt.Fprintf(&b, `
# Healthy nodes

Each of the simulator's %d profiles, looked at when new, again, after a minute under
load, and by its own baseline. Nothing may be found but what is true: a card without
ECC, and a card in MIG mode without an instance, until a baseline says that it is
meant so.

| node | found by | code | outcome | action | in |
|---|---|---|---|---|---|
`, len(calm))
	for _, r := range calm {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}
