#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Creates many images from one: images_of_debian.py ARCHIVE OUT <SPECIFICATION

ARCHIVE is an OCI archive of one image with one layer, OUT one of as many images as the specification names, all with that layer and
each with a configuration of its own. The specification is JSON: {"name:tag": {"Entrypoint": [...], "Cmd": [...], "Env": [...], ...}}.
"""
import hashlib
import io
import json
import sys
import tarfile


def main():
    archive, out = sys.argv[1:]
    wanted = json.load(sys.stdin)
    with tarfile.open(archive) as old, tarfile.open(out, "w") as new:
        def read(name):
            return old.extractfile(name).read()

        def blob(descriptor):
            return "blobs/sha256/" + descriptor["digest"].split(":")[1]

        def add(name, data):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            new.addfile(info, io.BytesIO(data))

        def add_blob(value, media_type):
            data = json.dumps(value).encode()
            digest = hashlib.sha256(data).hexdigest()
            add("blobs/sha256/" + digest, data)
            return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data)}

        manifest = json.loads(read(blob(json.loads(read("index.json"))["manifests"][0])))
        config = json.loads(read(blob(manifest["config"])))
        entries = []
        for name, settings in wanted.items():
            config["config"] = {"Env": config["config"].get("Env", []), **settings}
            manifest["config"] = add_blob(config, manifest["config"]["mediaType"])
            entry = add_blob(manifest, manifest["mediaType"])
            entry["annotations"] = {"io.containerd.image.name": name}
            entries.append(entry)
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": entries}).encode())
        add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        layer = old.getmember(blob(manifest["layers"][0]))
        new.addfile(layer, old.extractfile(layer))


main()
