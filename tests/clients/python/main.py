# SPDX-License-Identifier: Apache-2.0
"""Programs on python3-kubernetes, unmodified, against the server in a kubeconfig.
Arguments: KUBECONFIG DIRECTORY IMAGE; the directory contains objects.yaml, the image has a shell."""
import sys

from kubernetes import client, config

import check
import dynamic_client
import pods
import typed_clients
import watches


def namespace(name):
    core = client.CoreV1Api()
    core.create_namespace({"metadata": {"name": name}})
    check.until("the namespace has its service account and the authority's certificate", lambda: bool(
        core.list_namespaced_service_account(name).items and core.list_namespaced_config_map(name).items))
    return name


def main():
    kubeconfig, directory, image = sys.argv[1:]
    config.load_kube_config(kubeconfig)
    typed_clients.run(namespace("python-typed"))
    dynamic_client.run(namespace("python-dynamic"), directory)
    watches.run(namespace("python-watches"))
    pods.run(namespace("python-pods"), image)
    watches.run_restart(namespace("python-restart"))


main()
