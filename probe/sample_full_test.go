//go:build cgo && full

package main

import "testing"

func TestThousandRunsWhileSamplersLeave(t *testing.T) { churn(t, 1000) }
