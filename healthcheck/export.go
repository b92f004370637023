package main

import (
	"path/filepath"

	"gpuhooks/internal/line"
	"gpuhooks/internal/node"
)

// export writes what was found to where monitoring looks for it. Nothing else
// depends on it: what cannot be written is said.
func (h *hook) export() {
	if dir := h.cfg.Export.Textfile; dir != "" {
		faults, err := h.durable().Faults()
		if err != nil {
			h.log.Warnf("the history of faults: %v", err)
		}
		text := h.prometheus(h.braked, node.Cards(faults, h.env.Now()))
		if err := node.Replace(filepath.Join(dir, "gpuhooks.prom"), text, 0o644, false); err != nil {
			h.log.Warnf("the textfile for Prometheus: %v", err)
		}
	}
	if path := h.cfg.Export.Lines; path != "" {
		cluster, _ := h.look.Conf.Get("ClusterName")
		b, err := line.Health(cluster.Value, h.name, h.look.Reading.Node, h.verdict, h.verdict.Time)
		if err == nil {
			err = node.Replace(path, b, 0o644, false)
		}
		if err != nil {
			h.log.Warnf("the lines for monitoring: %v", err)
		}
	}
}
