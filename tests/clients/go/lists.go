// SPDX-License-Identifier: Apache-2.0

// Lists: pages, the moments they are of, and selectors.
package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

func checkLists(ns string) {
	maps := typed.CoreV1().ConfigMaps(ns)
	const count = 25
	check("25 ConfigMaps to list", func(ctx context.Context) error {
		for n := 0; n < count; n++ {
			object := configMap(fmt.Sprintf("item-%02d", n))
			object.Labels = map[string]string{"n": strconv.Itoa(n), "even": strconv.FormatBool(n%2 == 0)}
			if n < 5 {
				object.Labels["few"] = ""
			}
			if _, err := maps.Create(ctx, object, options()); err != nil {
				return err
			}
		}
		return nil
	})
	mine := metav1.ListOptions{LabelSelector: "n"}
	check("pages are of one moment: what is made and deleted in between does not show", func(ctx context.Context) error {
		first, err := maps.List(ctx, metav1.ListOptions{Limit: 10})
		if err != nil {
			return err
		}
		if _, err := maps.Create(ctx, configMap("zz-late"), options()); err != nil {
			return err
		}
		if err := maps.Delete(ctx, "item-24", metav1.DeleteOptions{}); err != nil {
			return err
		}
		seen := map[string]bool{}
		page, total := first, 0
		for ; ; total++ {
			for _, item := range page.Items {
				seen[item.Name] = true
			}
			if err := same("the page's resourceVersion", page.ResourceVersion, first.ResourceVersion); err != nil {
				return err
			}
			if page.Continue == "" {
				break
			}
			if page.RemainingItemCount == nil {
				return fmt.Errorf("a page without remainingItemCount")
			}
			if page, err = maps.List(ctx, metav1.ListOptions{Limit: 10, Continue: page.Continue}); err != nil {
				return err
			}
		}
		late := configMap("item-24")
		late.Labels = map[string]string{"n": "24", "even": "true"}
		if _, err := maps.Create(ctx, late, options()); err != nil {
			return err
		}
		return all(same("items", len(seen), count+1 /* kube-root-ca.crt */), same("item-24", seen["item-24"], true), same("zz-late", seen["zz-late"], false),
			same("pages", total+1, 3), same("remaining", *first.RemainingItemCount, int64(count+1-10)))
	})
	check("the pager brings every item once, in order", func(ctx context.Context) error {
		brought := pager.New(func(ctx context.Context, how metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, how) })
		brought.PageSize = 7
		var names []string
		err := brought.EachListItem(ctx, mine, func(item runtime.Object) error {
			names = append(names, item.(*corev1.ConfigMap).Name)
			return nil
		})
		if err != nil {
			return err
		}
		for n, name := range names {
			if name != fmt.Sprintf("item-%02d", n) {
				return fmt.Errorf("item %d is %s", n, name)
			}
		}
		return same("items", len(names), count)
	})
	check("a list of an exact past moment, and one not older than now", func(ctx context.Context) error {
		before, err := maps.List(ctx, mine)
		if err != nil {
			return err
		}
		extra := configMap("extra")
		extra.Labels = map[string]string{"n": "x"}
		made, err := maps.Create(ctx, extra, options())
		if err != nil {
			return err
		}
		defer maps.Delete(context.Background(), "extra", metav1.DeleteOptions{})
		past := mine
		past.ResourceVersion, past.ResourceVersionMatch = before.ResourceVersion, metav1.ResourceVersionMatchExact
		then, err := maps.List(ctx, past)
		if err != nil {
			return err
		}
		fresh := mine
		fresh.ResourceVersion, fresh.ResourceVersionMatch = made.ResourceVersion, metav1.ResourceVersionMatchNotOlderThan
		now, err := maps.List(ctx, fresh)
		if err != nil {
			return err
		}
		cached := mine
		cached.ResourceVersion = "0"
		any, err := maps.List(ctx, cached)
		if err != nil {
			return err
		}
		return all(same("then", len(then.Items), count), same("its resourceVersion", then.ResourceVersion, before.ResourceVersion), same("now", len(now.Items), count+1),
			same("of any moment", len(any.Items) >= count, true))
	})
	check("a resourceVersion of the future: a timeout that says so and invites to ask again", func(ctx context.Context) error {
		err := typed.CoreV1().RESTClient().Get().MaxRetries(0). // client-go would, for half a minute
									Namespace(ns).Resource("configmaps").Param("resourceVersion", "999999999999").Param("resourceVersionMatch", "NotOlderThan").Do(ctx).Error()
		if err == nil {
			return fmt.Errorf("was answered")
		}
		return all(same("IsTimeout", apierrors.IsTimeout(err), true), same("cause", apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), true),
			matches("message", err.Error(), `^Timeout: Too large resource version: 999999999999, current: \d+$`))
	})
	check("options that do not go together are invalid", func(ctx context.Context) error {
		_, err := maps.List(ctx, metav1.ListOptions{ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		return all(causes(err, "resourceVersionMatch: FieldValueForbidden"),
			refused(err, apierrors.IsInvalid, "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"))
	})
	check("label selectors: equal, in, not in, there, not there, greater", func(ctx context.Context) error {
		for selector, want := range map[string]int{
			"n=3": 1, "n==3": 1, "n,even=true": 13, "n,even!=true": 12, "n in (1,2,3)": 3, "n,n notin (1,2,3)": 22, "few": 5, "n,!few": 20, "n>20": 4, "n<3": 3, "few,even=false": 2, "n=99": 0,
		} {
			list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil || len(list.Items) != want {
				return fmt.Errorf("%s: want %d, got %d, %v", selector, want, len(list.Items), err)
			}
			if list.RemainingItemCount != nil {
				return fmt.Errorf("%s: remainingItemCount", selector)
			}
		}
		set := labels.SelectorFromSet(labels.Set{"even": "true", "few": ""})
		list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: set.String()})
		if err != nil {
			return err
		}
		return same("of a set", len(list.Items), 3)
	})
	check("field selectors: of every kind, and the kinds' own", func(ctx context.Context) error {
		list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "item-07").String()})
		if err != nil {
			return err
		}
		others, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "n", FieldSelector: "metadata.name!=item-07"})
		if err != nil {
			return err
		}
		secrets := typed.CoreV1().Secrets(ns)
		for name, kind := range map[string]corev1.SecretType{"one": "example.com/a", "two": "example.com/b"} {
			if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}, options()); err != nil {
				return err
			}
		}
		kind, err := secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=example.com/b"})
		if err != nil {
			return err
		}
		active, err := typed.CoreV1().Namespaces().List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Active,metadata.name=" + ns})
		if err != nil {
			return err
		}
		return all(same("by name", len(list.Items), 1), same("but one", len(others.Items), count-1), same("by type", len(kind.Items), 1), same("of phase", len(active.Items), 1))
	})
	check("over all namespaces, and of nothing: items is an empty list", func(ctx context.Context) error {
		list, err := typed.CoreV1().ConfigMaps("").List(ctx, mine)
		if err != nil {
			return err
		}
		text, err := typed.CoreV1().RESTClient().Get().Resource("configmaps").Namespace("go-nowhere").SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return err
		}
		return all(same("items", len(list.Items), count), matches("text", string(text), `^\{"kind":"ConfigMapList","apiVersion":"v1","metadata":\{"resourceVersion":"\d+"\},"items":\[\]\}\s*$`))
	})
	check("a continue token is not a token when it is changed", func(ctx context.Context) error {
		_, err := maps.List(ctx, metav1.ListOptions{Limit: 5, Continue: "nonsense"})
		return same("IsBadRequest", apierrors.IsBadRequest(err), true)
	})
}
