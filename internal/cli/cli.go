// Package cli is what every program does alike: run a command, turn an error
// into one line and an exit status, log, print JSON, say the version, and
// survive a panic in a hook.
package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The exit statuses of the commands that people run. A hook knows only 0 and 1:
// Slurm takes any other status for a failed node.
const (
	OK     = 0
	Failed = 1 // a check failed, or what was asked for does not exist
	Usage  = 2 // usage or configuration
	Blind  = 3 // could not look
)

// ExitError is an error with its exit status. Err nil prints nothing: the
// command has already said what there is to say.
type ExitError struct {
	Code int
	Err  error
	Hint string // what to do about it; "" when there is nothing to add
}

// Error returns the cause.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns an error that ends the program with that status and prints
// nothing; nil for OK.
func Exit(code int) error {
	if code == OK {
		return nil
	}
	return &ExitError{Code: code}
}

// Env is what a program gets from outside. Commands read nothing else, so that
// a test can run them with buffers.
type Env struct {
	Program string   // for messages: gpu-prolog
	Args    []string // without the program's name
	Environ []string // KEY=value
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
}

// System is the environment of this process.
func System() Env {
	return Env{
		Program: filepath.Base(os.Args[0]), Args: os.Args[1:], Environ: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
	}
}

// Main runs a program and returns its exit status:
//
//	func main() { os.Exit(cli.Main(newCommand)) }
func Main(newCommand func(Env) *Command) int { return Run(System(), newCommand) }

// Run is Main with the environment given.
func Run(env Env, newCommand func(Env) *Command) int {
	root := newCommand(env)
	root.out = env.Stdout
	addMan(root)
	version := root.Flags().Bool("version", false, "print the version")
	run := root.RunE
	root.RunE = func(c *Command, args []string) error {
		switch {
		case *version:
			_, err := fmt.Fprintln(env.Stdout, env.Program, Version())
			return err
		case run == nil:
			return c.Help()
		}
		return run(c, args)
	}
	cmd, ran, err := root.execute(env.Args)
	if err == nil {
		return OK
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		exit = &ExitError{Code: Blind, Err: err}
		if !ran {
			exit = &ExitError{Code: Usage, Err: err, Hint: "see " + cmd.CommandPath() + " --help"}
		}
	}
	if exit.Err != nil {
		report(env, cmd, exit)
	}
	return exit.Code
}

// report says on stderr why the program failed: one line and a hint, or one
// JSON object where --json was asked for.
func report(env Env, cmd *Command, e *ExitError) {
	if cmd.Flags().Changed("json") {
		// Stderr is all there is to say it on; a failure to write has no other place.
		_ = WriteJSON(env.Stderr, struct {
			Schema string `json:"schema"`
			Error  string `json:"error"`
			Hint   string `json:"hint,omitempty"`
			Code   int    `json:"code"`
		}{"gpuhooks.error/1", Clean(e.Error()), e.Hint, e.Code})
		return
	}
	log := NewLog(env)
	for _, err := range flatten(e.Err) {
		log.Errorf("%v", err)
	}
	if e.Hint != "" {
		log.Hintf("%s", e.Hint)
	}
}

// flatten takes errors.Join apart: one line each.
func flatten(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range joined.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}
