//go:build cgo

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"gpuhooks/internal/nvml"
)

// dropRights turns root into an ordinary user before the driver is opened.
func (k *asker) dropRights() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setgid(k.o.uid); err != nil {
		return fmt.Errorf("setgid %d: %w", k.o.uid, err)
	}
	if err := syscall.Setuid(k.o.uid); err != nil {
		return fmt.Errorf("setuid %d: %w", k.o.uid, err)
	}
	return nil
}

// rights asks again without root's rights.
func (k *asker) rights() {
	calls, fault := k.lib.TryCalls(k.o.gpu)
	if fault != nil {
		k.fail("rights", "uid %d: %v", os.Getuid(), fault)
		return
	}
	var refused []string
	for _, c := range calls {
		if c.Result == nvml.NoPermission {
			refused = append(refused, strings.TrimPrefix(c.Call, "nvmlDevice"))
		}
	}
	sample := nvml.Missing
	if s, ok := k.lib.NewGPMSample(); ok {
		sample = k.dev.SampleGPM(s)
		k.lib.FreeGPMSample(s)
	}
	text := "no call is refused"
	if len(refused) > 0 {
		text = "refused: " + strings.Join(refused, ", ")
	}
	k.say("rights", map[string]any{"uid": os.Getuid(), "gpm_sample": sample, "refused": refused},
		"uid %d: %s; a GPM sample answers %s", os.Getuid(), text, sample)
}
