"""Feeds seeds to the real cloud-init and writes down what it made of them.

Usage: feed_cloudinit.py SEEDS OUT. SEEDS has one folder of NoCloud files per case.
OUT gets CASE/seen.json, what the NoCloud data source found, and CASE/RENDERER/,
the files each network renderer would write.
"""

import contextlib
import copy
import io
import json
import os
import shutil
import sys

from cloudinit import helpers, settings, stages
from cloudinit.cmd.main import main
from cloudinit.config import schema
from cloudinit.handlers import jinja_template
from cloudinit.sources import DataSourceNoCloud

RENDERERS = ("eni", "netplan", "networkd")


# What templates read, as `{{ KEY }}`.
JINJA = (
    "ds.meta_data.name",
    "ds.meta_data.uuid",
    "ds.meta_data.instance_id",
    "ds.meta_data.local_hostname",
    "ds.meta_data.hardware_uid",
    "ds.meta_data.provider_id",
    "ds.meta_data.phone_home_url",
    "v1.availability_zone",
)


def first_boot(seed, work):
    """Runs the stages of a first boot up to the merged configuration."""
    shutil.copytree(seed, os.path.join(work, "seed", "nocloud"))
    os.mkdir(os.path.join(work, "run"))
    cfg = copy.deepcopy(settings.CFG_BUILTIN)
    cfg["datasource_list"] = ["NoCloud"]
    cfg["system_info"] = {
        "distro": "debian",
        "paths": {"cloud_dir": work, "run_dir": os.path.join(work, "run"), "templates_dir": work},
    }
    # Its DMI and kernel command line look-ups are about the machine of the test.
    DataSourceNoCloud.dmi.read_dmi_data = lambda _: None
    DataSourceNoCloud.load_cmdline_data = lambda *_: False
    init = stages.Init()
    init._read_cfg = lambda *_: copy.deepcopy(cfg)
    init.initialize()
    init.fetch()
    init.instancify()
    init.update()
    init.consume_data()
    merged = helpers.ConfigMerger(
        paths=init.paths, datasource=init.datasource, base_cfg=init.cfg
    ).cfg
    return init, merged


def rendered(init):
    """What a template sees, by the name it uses."""
    text = "## template: jinja\n" + "\n".join("{{ %s }}" % k for k in JINJA)
    data = init.paths.get_runpath("instance_data_sensitive")
    out = jinja_template.render_jinja_payload_from_file(text, "test", data)
    return {k: "" if v == "None" or "CI_MISSING" in v else v for k, v in zip(JINJA, out.splitlines())}


def check(seed, out):
    init, merged = first_boot(seed, os.path.join(out, "work"))
    source = init.datasource
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
    for name in ("user-data", "vendor-data"):
        with open(os.path.join(seed, name), encoding="utf-8") as f:
            if f.readline() != "#cloud-config\n":
                continue
        schema.validate_cloudconfig_file(os.path.join(seed, name), schema.get_schema(), annotate=False)
    with open(os.path.join(out, "seen.json"), "w", encoding="utf-8") as f:
        json.dump(
            {
                "instanceID": source.metadata["instance-id"],
                "hostname": source.metadata["local-hostname"],
                "keys": source.get_public_ssh_keys(),
                "phone": (merged.get("phone_home") or {}).get("url", ""),
                "fqdn": merged.get("fqdn") or "",
                "jinja": rendered(init),
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
