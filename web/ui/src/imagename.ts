// What the name of an image's file says: a first guess for a form, which people correct.

/** Guess is what can be told from the name of a file. */
export interface Guess {
  name: string;
  os: string;
  osVersion: string;
  kubernetesVersion: string;
  arch: string;
}

const systems = ["debian", "ubuntu", "fedora", "rocky", "almalinux", "centos", "rhel", "opensuse", "sles", "flatcar", "talos", "alpine", "arch", "nixos", "windows"];

/** Guesses from a file's name, or the last part of a URL. */
export function guess(file: string): Guess {
  const base = decoded(file.split(/[?#]/)[0]!.split(/[/\\]/).pop()!).toLowerCase();
  const stem = base.replace(/\.(gz|xz|zst|zstd|bz2)$/, "").replace(/\.(img|raw|qcow2|iso|tar|bin|dd)$/, "");
  const words = stem.split(/[^a-z0-9.]+/).filter(Boolean);
  const named = (w: string) => systems.find((s) => w === s || w.replace(/[\d.]+$/, "") === s);
  const at = words.findIndex((w) => named(w)); // what comes before the system is not its version
  const os = at < 0 ? "" : named(words[at]!)!;
  const kubernetes = /(?:kube|k8s|kubernetes)[^a-z0-9]*v?(\d+\.\d+(?:\.\d+)?)/.exec(stem)?.[1] ?? "";
  const version = words.filter((w) => w !== kubernetes && w !== `v${kubernetes}`).map((w) => /^[a-z]*?v?(\d+(?:\.\d+)*)$/.exec(w)?.[1]);
  const dated = (v: string) => v.length >= 6 && !v.includes(".");
  const arm = words.some((w) => /^(arm64|aarch64)$/.test(w));
  const intel = words.some((w) => /^(amd64|64|x86)$/.test(w)) || stem.includes("x86_64");
  return {
    name: stem
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 63)
      .replace(/-+$/, ""),
    os,
    osVersion: (os && version.find((v, i) => i >= at && v && !dated(v) && !/^(amd64|arm64|x86|aarch64|64)$/.test(words[i]!))) || "",
    kubernetesVersion: kubernetes,
    arch: arm ? "arm64" : intel ? "amd64" : "",
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
