"""Points the Ec2 data source of the real cloud-init at a server of ours and prints
what it made of the answers, as JSON.

Usage: ec2_cloudinit.py URL WORK PHONE. PHONE is a URL that the phone_home module
calls.
"""

import json
import logging
import os
import sys

from cloudinit import helpers, settings
from cloudinit.config import cc_phone_home
from cloudinit.sources import DataSourceEc2
from cloudinit.sources.helpers import ec2

# As deploy/docs/metadata.md has it.
CONFIG = """
datasource_list: [Ec2]
datasource:
  Ec2:
    metadata_urls: ["%s"]
    strict_id: false
"""


class Cloud:
    """What the phone_home module asks of cloud-init."""

    def __init__(self, source):
        self.source = source
        self.paths = source.paths

    def get_instance_id(self):
        return self.source.get_instance_id()

    def get_hostname(self, fqdn=False):
        return self.source.get_hostname(fqdn=fqdn)


def main(url, work, phone):
    from cloudinit import util

    cfg = util.mergemanydict([util.load_yaml(CONFIG % url), settings.CFG_BUILTIN])
    paths = helpers.Paths({"cloud_dir": work, "run_dir": work, "templates_dir": work})
    # Its DMI look-ups are about the machine of the test; this is any other maker's.
    DataSourceEc2.dmi.read_dmi_data = lambda _: "x"
    source = DataSourceEc2.DataSourceEc2(cfg, None, paths)
    if not source._get_data():
        sys.exit("cloud-init finds no Ec2 data")
    network = DataSourceEc2.convert_ec2_metadata_network_config(
        source.metadata["network"], {"52:54:00:00:00:01": "eth0", "52:54:00:00:00:02": "eth1"}, "eth0"
    )
    cc_phone_home.handle(
        "phone-home", {"phone_home": {"url": phone, "tries": 2}}, Cloud(source), logging.getLogger(), []
    )
    out = {
        "instanceID": source.get_instance_id(),
        "hostname": source.get_hostname().hostname,
        "fqdn": source.get_hostname(fqdn=True).hostname,
        "keys": source.get_public_ssh_keys(),
        "zone": source.availability_zone,
        "userData": source.userdata_raw.decode(),
        "name": source.metadata["name"],
        "network": network,
        "strict": DataSourceEc2.read_strict_mode(cfg["datasource"]["Ec2"]["strict_id"], None)[0],
    }
    # As on Amazon's own machines, with a session token.
    source._cloud_name = DataSourceEc2.CloudNames.AWS
    if source._maybe_fetch_api_token([url]) != url:
        sys.exit("cloud-init gets no session token")
    out["tokenUserData"] = ec2.get_instance_userdata(
        "2009-04-04", url, headers_cb=source._get_headers
    ).decode()
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
