package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Command is one command of a program: the program itself, or one of its
// subcommands. It has the fields of cobra's that are needed here; cobra itself
// would be a quarter of each hook.
type Command struct {
	Use     string // one line: name, then arguments as in "report JOBID"
	Short   string // one sentence without a full stop
	Long    string // what --help says; ends with EXIT STATUS
	Example string // lines with two blanks before them
	Args    func(c *Command, args []string) error
	RunE    func(c *Command, args []string) error

	parent     *Command
	commands   []*Command
	flags      Flags // its own
	persistent Flags // its own and its subcommands'
	given      map[string]bool
	out        io.Writer
}

// Flags are a command's flags: those of package flag, written with two dashes,
// before or behind the arguments.
type Flags struct {
	flag.FlagSet
	command *Command
}

// Flags are the flags of this command alone.
func (c *Command) Flags() *Flags { c.flags.command = c; return &c.flags }

// PersistentFlags are those of this command and its subcommands.
func (c *Command) PersistentFlags() *Flags { c.persistent.command = c; return &c.persistent }

// StringArrayVar adds a flag that may be repeated.
func (f *Flags) StringArrayVar(to *[]string, name string, value []string, usage string) {
	*to = value
	f.Func(name, usage, func(s string) error { *to = append(*to, s); return nil })
}

// Changed says whether the flag was given.
func (f *Flags) Changed(name string) bool {
	for c := f.command; c != nil; c = c.parent {
		if c.given[name] {
			return true
		}
	}
	return false
}

// AddCommand adds subcommands.
func (c *Command) AddCommand(subs ...*Command) {
	for _, s := range subs {
		s.parent = c
		c.commands = append(c.commands, s)
	}
}

// Context is the command's context. Nothing cancels it: the programs are short.
func (c *Command) Context() context.Context { return context.Background() }

// Name is the command's own name.
func (c *Command) Name() string { name, _, _ := strings.Cut(c.Use, " "); return name }

// CommandPath is the name with those of the commands above it.
func (c *Command) CommandPath() string {
	if c.parent == nil {
		return c.Name()
	}
	return c.parent.CommandPath() + " " + c.Name()
}

// NoArgs allows no arguments.
func NoArgs(c *Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
	}
	return nil
}

// ExactArgs allows just so many arguments.
func ExactArgs(n int) func(*Command, []string) error {
	return func(c *Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("accepts %d arg(s), received %d", n, len(args))
		}
		return nil
	}
}

// MaximumNArgs allows up to so many arguments.
func MaximumNArgs(n int) func(*Command, []string) error {
	return func(c *Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("accepts at most %d arg(s), received %d", n, len(args))
		}
		return nil
	}
}

// execute finds the command that the arguments name, and runs it. ran says
// whether it came to that: an error before is about the command line.
func (c *Command) execute(args []string) (last *Command, ran bool, err error) {
	set := c.flagSet()
	var rest []string
	for first := true; ; first = false {
		if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
			return c, true, c.Help()
		} else if err != nil {
			return c, false, flagError(err)
		}
		ended := len(args) > set.NArg() && args[len(args)-set.NArg()-1] == "--"
		args = set.Args()
		set.Visit(func(f *flag.Flag) {
			if c.given == nil {
				c.given = map[string]bool{}
			}
			c.given[f.Name] = true
		})
		if ended || len(args) == 0 {
			rest = append(rest, args...)
			break
		}
		if first {
			if s := c.find(args[0]); s != nil {
				return s.execute(args[1:])
			}
		}
		rest, args = append(rest, args[0]), args[1:]
	}
	check := c.Args
	if check == nil {
		check = NoArgs
	}
	if err := check(c, rest); err != nil {
		return c, false, err
	}
	if c.RunE == nil {
		return c, true, c.Help()
	}
	return c, true, c.RunE(c, rest)
}

func (c *Command) find(name string) *Command {
	for _, s := range c.commands {
		if s.Name() == name {
			return s
		}
	}
	return nil
}

// flagSet holds all the flags that the command knows.
func (c *Command) flagSet() *flag.FlagSet {
	set := flag.NewFlagSet(c.CommandPath(), flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors and help are printed in our own way
	add := func(f *flag.Flag) { set.Var(f.Value, f.Name, f.Usage) }
	c.flags.VisitAll(add)
	for p := c; p != nil; p = p.parent {
		p.persistent.VisitAll(add)
	}
	return set
}

// flagError writes an error of package flag as people write flags.
func flagError(err error) error {
	s := err.Error()
	s = strings.Replace(s, "flag provided but not defined: -", "unknown flag: --", 1)
	s = strings.Replace(s, "flag needs an argument: -", "flag needs an argument: --", 1)
	s = strings.Replace(s, "for flag -", "for flag --", 1)
	return errors.New(strings.ReplaceAll(s, "---", "--"))
}
