//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// timeCommand runs a command again and again, at most runs times and for at
// most limit, and answers question id. The file fresh is removed before each
// run: a reading that the command would share with the run before.
func timeCommand(id string, command []string, runs int, limit time.Duration, fresh string) (answer, error) {
	if len(command) == 0 || runs < 1 {
		return answer{}, usageError{errors.New("--time: a command and at least one run are needed")}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var took []time.Duration
	statuses := map[string]int{}
	for range runs {
		if fresh != "" {
			if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
				return answer{}, err
			}
		}
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		from := time.Now()
		err := cmd.Run()
		d := time.Since(from)
		if ctx.Err() != nil {
			break
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return answer{}, err
		}
		took = append(took, d)
		statuses[fmt.Sprintf("status_%d", cmd.ProcessState.ExitCode())]++
	}
	if len(took) == 0 {
		return answer{ID: id, State: failed, Answer: fmt.Sprintf("not one run within %v", limit)}, nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p50, p99, longest := quantile(took, 0.5), quantile(took, 0.99), quantile(took, 1)
	a := answer{ID: id, State: answered, Values: map[string]any{
		"runs": len(took), "first_milliseconds": ms(took[0]), "p50_milliseconds": ms(p50), "p99_milliseconds": ms(p99),
		"longest_milliseconds": ms(longest), "statuses": statuses,
	}}
	a.Answer = fmt.Sprintf("p50 %.1f ms, p99 %.1f ms of %d runs, the first %.1f ms", ms(p50), ms(p99), len(took), ms(took[0]))
	if n := len(took) - statuses["status_0"]; n > 0 {
		a.Answer += fmt.Sprintf("; %d ended with another status than 0", n)
	}
	return a, nil
}
