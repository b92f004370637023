// Package detect proves what the health check finds: faults injected into
// simulated nodes, one after the other, and healthy nodes of every kind, on
// which nothing may be found. `make detect` writes docs/detection.md from it;
// the test fails when the programs no longer do what stands there.
package detect
