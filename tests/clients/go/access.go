// SPDX-License-Identifier: Apache-2.0

// Who one is and what one may: tokens, reviews, roles, impersonation.
package main

import (
	"context"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func checkAccess(ns string) {
	var token string
	var holder *kubernetes.Clientset
	username := "system:serviceaccount:" + ns + ":robot"
	check("a token for a service account: it lasts as long as was asked, and is for whom was asked", func(ctx context.Context) error {
		accounts := typed.CoreV1().ServiceAccounts(ns)
		if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, options()); err != nil {
			return err
		}
		got, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer[int64](1200)}}, options())
		if err != nil {
			return err
		}
		token = got.Status.Token
		_, short := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: pointer[int64](10)}}, options())
		_, nobody := accounts.CreateToken(ctx, "nobody", &authenticationv1.TokenRequest{}, options())
		with := rest.AnonymousClientConfig(config)
		with.BearerToken = token
		if holder, err = kubernetes.NewForConfig(with); err != nil {
			return err
		}
		return all(matches("token", token, `^[\w-]+\.[\w-]+\.[\w-]+$`), same("seconds", *got.Spec.ExpirationSeconds, int64(1200)), same("audiences", len(got.Spec.Audiences) > 0, true),
			causes(short, "spec.expirationSeconds: FieldValueInvalid"), refused(nobody, apierrors.IsNotFound, `serviceaccounts "nobody" not found`))
	})
	check("the token's holder is who it says, and TokenReview knows it", func(ctx context.Context) error {
		self, err := holder.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, options())
		if err != nil {
			return err
		}
		review, err := typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, options())
		if err != nil {
			return err
		}
		bad, err := typed.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token + "x"}}, options())
		if err != nil {
			return err
		}
		groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}
		return all(same("self", self.Status.UserInfo.Username, username), same("groups", self.Status.UserInfo.Groups, groups), same("authenticated", review.Status.Authenticated, true),
			same("user", review.Status.User.Username, username), same("forged", bad.Status.Authenticated, false))
	})
	check("no token is anonymous and forbidden, a wrong one is unauthorized", func(ctx context.Context) error {
		anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
		if err != nil {
			return err
		}
		wrong := rest.AnonymousClientConfig(config)
		wrong.BearerToken = "nonsense"
		liar, err := kubernetes.NewForConfig(wrong)
		if err != nil {
			return err
		}
		_, forbidden := anonymous.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		_, unauthorized := liar.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		version, err := anonymous.Discovery().ServerVersion()
		return all(err, same("version", version.Major, "1"), refused(unauthorized, apierrors.IsUnauthorized, "Unauthorized"),
			refused(forbidden, apierrors.IsForbidden, `pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "`+ns+`"`))
	})
	check("without a role all is forbidden, in Kubernetes' words", func(ctx context.Context) error {
		_, get := holder.CoreV1().Secrets(ns).Get(ctx, "x", metav1.GetOptions{})
		_, list := holder.AppsV1().Deployments(ns).List(ctx, metav1.ListOptions{})
		_, nodes := holder.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		_, status := holder.CoreV1().Pods(ns).UpdateStatus(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.UpdateOptions{})
		who := `User "` + username + `" cannot `
		return all(refused(get, apierrors.IsForbidden, `secrets "x" is forbidden: `+who+`get resource "secrets" in API group "" in the namespace "`+ns+`"`),
			refused(list, apierrors.IsForbidden, `deployments.apps is forbidden: `+who+`list resource "deployments" in API group "apps" in the namespace "`+ns+`"`),
			refused(nodes, apierrors.IsForbidden, `nodes is forbidden: `+who+`list resource "nodes" in API group "" at the cluster scope`),
			refused(status, apierrors.IsForbidden, `pods "p" is forbidden: `+who+`update resource "pods/status" in API group "" in the namespace "`+ns+`"`))
	})
	check("a role and its binding let in, and no further", func(ctx context.Context) error {
		roles := typed.RbacV1()
		if _, err := roles.Roles(ns).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}, options()); err != nil {
			return err
		}
		if _, err := roles.RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot", Namespace: ns}}}, options()); err != nil {
			return err
		}
		if err := until(ctx, "the holder may list", func() (bool, string) {
			_, err := holder.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
			return err == nil, fmt.Sprint(err)
		}); err != nil {
			return err
		}
		_, write := holder.CoreV1().ConfigMaps(ns).Create(ctx, configMap("x"), options())
		_, elsewhere := holder.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return all(same("write", apierrors.IsForbidden(write), true), same("elsewhere", apierrors.IsForbidden(elsewhere), true))
	})
	check("access reviews of oneself and of others agree with what happens", func(ctx context.Context) error {
		ask := func(client kubernetes.Interface, verb, resource string) (bool, error) {
			got, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: verb, Resource: resource}}}, options())
			if err != nil {
				return false, err
			}
			return got.Status.Allowed, nil
		}
		list, err := ask(holder, "list", "configmaps")
		if err != nil {
			return err
		}
		remove, err := ask(holder, "delete", "configmaps")
		if err != nil {
			return err
		}
		admin, err := ask(typed, "delete", "nodes")
		if err != nil {
			return err
		}
		other, err := typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: username, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "configmaps"}}}, options())
		if err != nil {
			return err
		}
		rules, err := holder.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: ns}}, options())
		if err != nil {
			return err
		}
		found := slices.ContainsFunc(rules.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
			return slices.Equal(rule.Resources, []string{"configmaps"}) && slices.Contains(rule.Verbs, "list")
		})
		return all(same("may list", list, true), same("may delete", remove, false), same("the administrator may", admin, true), same("another may get", other.Status.Allowed, true),
			matches("why", other.Status.Reason, `^RBAC: allowed by RoleBinding "reader/`+ns+`" of Role "reader" to ServiceAccount "robot/`+ns+`"$`), same("the rule is listed", found, true))
	})
	check("impersonation: as another, with another's rights", func(ctx context.Context) error {
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"developers"}, Extra: map[string][]string{"example.com/team": {"a"}}}
		jane, err := kubernetes.NewForConfig(as)
		if err != nil {
			return err
		}
		self, err := jane.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, options())
		if err != nil {
			return err
		}
		_, forbidden := jane.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return all(same("user", self.Status.UserInfo.Username, "jane"), same("groups", self.Status.UserInfo.Groups, []string{"developers", "system:authenticated"}),
			same("extra", self.Status.UserInfo.Extra["example.com/team"], authenticationv1.ExtraValue{"a"}),
			refused(forbidden, apierrors.IsForbidden, `pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "`+ns+`"`))
	})
}
