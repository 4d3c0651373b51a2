// SPDX-License-Identifier: Apache-2.0

// What the checks stand on: each has a name that says what it checks and a function that returns what is wrong. Output is a line
// for each ("ok - NAME", "not ok - NAME") that clients.sh turns into TAP.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const timeout = 2 * time.Minute // of a check; the machine may be a busy one

var (
	only  = regexp.MustCompile(os.Getenv("CLIENTS_ONLY"))
	stdin = bufio.NewReader(os.Stdin)
)

// check runs one check with a deadline; a panic in it fails it.
func check(name string, body func(ctx context.Context) error) {
	name = "go: " + name
	if !only.MatchString(name) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	started := time.Now()
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		return body(ctx)
	}()
	if err == nil {
		fmt.Printf("ok - %s\n", name)
		return
	}
	text := fmt.Sprintf("%v (after %v)", err, time.Since(started).Round(time.Millisecond))
	fmt.Printf("not ok - %s\n", name)
	for n, line := range strings.Split(text, "\n") {
		if n == 30 {
			break
		}
		fmt.Printf("| %.600s\n", line)
	}
}

// ask has the daemon stopped ("stop") or started ("start"), and returns when that is done.
func ask(word string) error {
	fmt.Printf("!%s\n", word)
	answer, err := stdin.ReadString('\n')
	if err != nil || answer != "done\n" {
		return fmt.Errorf("asked for %s, answered %q, %v", word, answer, err)
	}
	return nil
}

// until polls until it is so; says what was seen last when time is up.
func until(ctx context.Context, what string, so func() (bool, string)) error {
	for last := ""; ; {
		yes, seen := so()
		if yes {
			return nil
		}
		if seen != "" {
			last = seen
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not so in time: %s; last seen: %s", what, last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// same fails when the two differ.
func same(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: want %#v, got %#v", what, want, got)
}

// matches fails when the text has nothing that the expression matches.
func matches(what, text, expression string) error {
	if regexp.MustCompile(expression).MatchString(text) {
		return nil
	}
	return fmt.Errorf("%s: want a match of %q, got %q", what, expression, text)
}

// all gives the first error of several.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refused checks an error as Kubernetes gives it: its class, and the whole message.
func refused(err error, is func(error) bool, message string) error {
	if err == nil {
		return fmt.Errorf("was accepted; want the refusal %q", message)
	}
	if !is(err) {
		return fmt.Errorf("another class of error (reason %q): %v", apierrors.ReasonForError(err), err)
	}
	if err.Error() != message {
		return fmt.Errorf("want the message %q, got %q", message, err.Error())
	}
	return nil
}

// causes checks the causes of an Invalid answer: "FIELD: TYPE" each, in any order.
func causes(err error, want ...string) error {
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("want Invalid, got reason %q: %v", apierrors.ReasonForError(err), err)
	}
	var got []string
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		got = append(got, cause.Field+": "+string(cause.Type))
	}
	sort.Strings(got)
	sort.Strings(want)
	return same("causes", got, want)
}

func options() metav1.CreateOptions { return metav1.CreateOptions{} }

func pointer[T any](value T) *T { return &value }
