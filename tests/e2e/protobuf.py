# SPDX-License-Identifier: Apache-2.0
# Kubernetes' protobuf bodies, written by hand. Source: Protocol Buffers "Encoding"; Kubernetes API concepts, "Protobuf encoding".


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def item(number, raw):
    """A field with a length: a text, or a message."""
    return bytes([number << 3 | 2]) + varint(len(raw)) + raw


def envelope(kind, raw):
    """A body: the message `raw` of that kind of v1."""
    return b"k8s\0" + item(1, item(1, b"v1") + item(2, kind)) + item(2, raw)
