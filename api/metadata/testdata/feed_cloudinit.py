"""Feeds seeds to the real cloud-init and writes down what it made of them.

Usage: feed_cloudinit.py SEEDS OUT. SEEDS has one folder of NoCloud files per case.
OUT gets CASE/seen.json, what the NoCloud data source found, and CASE/RENDERER/,
the files each network renderer would write.
"""

import contextlib
import io
import json
import os
import shutil
import sys

from cloudinit import helpers
from cloudinit.cmd.main import main
from cloudinit.config import schema
from cloudinit.sources import DataSourceNoCloud

RENDERERS = ("eni", "netplan", "networkd")


def data_source(seed, work):
    shutil.copytree(seed, os.path.join(work, "seed", "nocloud"))
    paths = helpers.Paths({"cloud_dir": work, "run_dir": work, "templates_dir": work})
    source = DataSourceNoCloud.DataSourceNoCloud(sys_cfg={}, distro=None, paths=paths)
    # Its DMI and kernel command line look-ups are about the machine of the test.
    DataSourceNoCloud.dmi.read_dmi_data = lambda _: None
    DataSourceNoCloud.load_cmdline_data = lambda *_: False
    if not source._get_data():
        sys.exit(f"{seed}: cloud-init finds no NoCloud data")
    return source


def check(seed, out):
    source = data_source(seed, os.path.join(out, "work"))
    network = source.network_config
    for renderer in RENDERERS:
        args = ["cloud-init", "devel", "net-convert", "-k", "yaml", "-D", "debian"]
        args += ["-p", os.path.join(seed, "network-config")]
        args += ["-d", os.path.join(out, renderer), "-O", renderer]
        # A process of its own: the netplan renderer changes its own defaults.
        child = os.fork()
        if child == 0:
            with contextlib.redirect_stdout(io.StringIO()):
                failed = main(args)
            os._exit(1 if failed else 0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"{seed}: the {renderer} renderer failed")
    schema.validate_cloudconfig_file(os.path.join(seed, "user-data"), schema.get_schema())
    with open(os.path.join(out, "seen.json"), "w", encoding="utf-8") as f:
        json.dump(
            {
                "instanceID": source.metadata["instance-id"],
                "hostname": source.metadata["local-hostname"],
                "keys": source.get_public_ssh_keys(),
                "userData": source.userdata_raw.decode("utf-8")
                if isinstance(source.userdata_raw, bytes)
                else source.userdata_raw,
                "macs": [e["match"]["macaddress"] for e in network["ethernets"].values()],
                "names": [e.get("set-name", "") for e in network["ethernets"].values()],
            },
            f,
        )


if __name__ == "__main__":
    for case in sorted(os.listdir(sys.argv[1])):
        check(os.path.join(sys.argv[1], case), os.path.join(sys.argv[2], case))
