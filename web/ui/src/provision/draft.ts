// What the wizard has been told so far. It is in memory only: user-data and secrets go
// into no URL and no storage, and are forgotten when somebody signs out.
import type { Parameter, Provision, StaticAddress, StaticNetwork, Template } from "../api/types.ts";

/** The steps, in their order. */
export const steps = ["machines", "image", "user-data", "review"] as const;

/** One step of the wizard. */
export type Step = (typeof steps)[number];

/** The formats of user-data. */
export type Format = "cloud-config" | "ignition" | "talos";

/** Draft is an install of several machines as far as people have said what it shall be. */
export interface Draft {
  machines: string[];
  /** An installed machine is installed anew. */
  reinstall: boolean;
  /** Claimed machines are installed under the claim that each has. */
  claimed: boolean;
  from: "catalogue" | "url" | "query";
  image: string;
  url: string;
  checksum: string;
  os: string;
  osVersion: string;
  kubernetesVersion: string;
  /** Which disk: empty, smallest, largest, serial=… or /dev/… */
  disk: string;
  format: Format;
  /** Empty is the built-in one of the format. */
  template: string;
  /** As they were typed, by name. */
  params: Record<string, string>;
  /** Empty takes that of each machine's record. */
  userData: string;
  ownUserData: boolean;
  metaData: string;
  network: "record" | "static" | "own";
  networkConfig: string;
  /** Addresses by machine, with their prefix length. */
  addresses: Record<string, string>;
  gateway: string;
  nameservers: string;
  search: string;
  waitForPhoneHome: boolean;
}

/** A draft that says nothing. */
export const empty = (): Draft => ({
  machines: [],
  reinstall: false,
  claimed: false,
  from: "catalogue",
  image: "",
  url: "",
  checksum: "",
  os: "",
  osVersion: "",
  kubernetesVersion: "",
  disk: "",
  format: "cloud-config",
  template: "",
  params: {},
  userData: "",
  ownUserData: false,
  metaData: "",
  network: "record",
  networkConfig: "",
  addresses: {},
  gateway: "",
  nameservers: "",
  search: "",
  waitForPhoneHome: false,
});

/** The built-in template of a format of user-data. */
export const builtIn: Record<Format, string> = { "cloud-config": "install", ignition: "install-ignition", talos: "install-talos" };

// what the request has fields of its own for
const ours = ["image", "checksum", "disk", "userData", "network", "metaData"];

/** The parameters of a template that the wizard asks for. */
export const asked = (t: Template | undefined): Parameter[] => (t?.spec.parameters ?? []).filter((p) => !ours.includes(p.name));

/** The values of a template's parameters in their types; those that are left empty have their default. */
export function values(parameters: Parameter[], typed: Record<string, string>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const p of parameters) {
    const text = typed[p.name];
    if (text === undefined || text === "") continue;
    out[p.name] = p.type === "int" && /^-?\d+$/.test(text.trim()) ? Number(text) : p.type === "bool" ? text === "true" : text;
  }
  return out;
}

const words = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

/** What the request says of the network of one machine; nothing where all of it is the record's. */
function staticOf(d: Draft, machine: string): StaticNetwork | undefined {
  if (d.network !== "static") return undefined;
  const addresses = words(d.addresses[machine] ?? "").map((address): StaticAddress => {
    const same = d.gateway.trim() !== "" && d.gateway.includes(":") === address.includes(":");
    return same ? { address, gateway: d.gateway.trim() } : { address };
  });
  const out: StaticNetwork = {};
  if (addresses.length > 0) out.addresses = addresses;
  if (words(d.nameservers).length > 0) out.nameservers = words(d.nameservers);
  if (words(d.search).length > 0) out.search = words(d.search);
  return Object.keys(out).length > 0 ? out : undefined;
}

/** The request for one machine. The claim is the one that holds it, empty where none does. */
export function request(d: Draft, machine: string, template: Template | undefined, claim: string | undefined): Provision {
  const params = values(asked(template), d.params);
  const net = staticOf(d, machine);
  const out: Provision = {
    format: d.format,
    ...(d.from === "catalogue" ? { image: d.image } : {}),
    ...(d.from === "url" ? { image: d.url.trim(), checksum: d.checksum.trim() } : {}),
    ...(d.from === "query" ? { os: d.os.trim(), osVersion: d.osVersion.trim(), kubernetesVersion: d.kubernetesVersion.trim() } : {}),
    disk: d.disk.trim(),
    template: d.template,
    userData: d.ownUserData ? d.userData : "",
    metaData: d.metaData,
    network: d.network === "own" ? d.networkConfig : "",
    ...(net ? { static: net } : {}),
    ...(Object.keys(params).length > 0 ? { params } : {}),
    reinstall: d.reinstall,
    waitForPhoneHome: d.waitForPhoneHome,
    ...(d.claimed && claim ? { claim } : {}),
  };
  return Object.fromEntries(Object.entries(out).filter(([, v]) => v !== "" && v !== false)) as Provision;
}

/** Why the wizard cannot go on from a step, empty where it can. What the appliance judges is not judged here. */
export function missing(d: Draft, step: Step): string {
  if (step === "machines") return d.machines.length > 0 ? "" : "Choose at least one machine.";
  if (step !== "image") return "";
  switch (d.from) {
    case "catalogue":
      return d.image ? "" : "Choose an image.";
    case "url":
      return d.url.trim() ? "" : "Give the URL of the image.";
    case "query":
      return d.os.trim() || d.osVersion.trim() || d.kubernetesVersion.trim() ? "" : "Say what must be in the image.";
  }
}

/** The image in words. */
export function imageText(d: Draft): string {
  switch (d.from) {
    case "catalogue":
      return d.image;
    case "url":
      return d.url.trim();
    case "query":
      return [d.os, d.osVersion, d.kubernetesVersion && `Kubernetes ${d.kubernetesVersion}`].filter((t) => t.trim()).join(" ");
  }
}

/** User-data to begin with. Hostname is empty where several machines get it: each gets its own anyway. */
export function starter(format: Format, hostname: string, keys: string[]): string {
  const user = "admin";
  switch (format) {
    case "cloud-config":
      return [
        "#cloud-config",
        ...(hostname ? [`hostname: ${JSON.stringify(hostname)}`] : []),
        "users:",
        `  - name: ${user}`,
        "    groups: [sudo]",
        "    shell: /bin/bash",
        "    sudo: ALL=(ALL) NOPASSWD:ALL",
        `    ssh_authorized_keys:${keys.length === 0 ? " []" : ""}`,
        ...keys.map((k) => `      - ${JSON.stringify(k)}`),
        "packages: []",
        "runcmd: []",
        "",
      ].join("\n");
    case "ignition":
      return `${JSON.stringify(
        {
          ignition: { version: "3.3.0" },
          passwd: { users: [{ name: "core", sshAuthorizedKeys: keys }] },
          ...(hostname ? { storage: { files: [{ path: "/etc/hostname", mode: 0o644, overwrite: true, contents: { source: `data:,${encodeURIComponent(hostname)}` } }] } } : {}),
        },
        null,
        2,
      )}\n`;
    case "talos":
      return "";
  }
}
