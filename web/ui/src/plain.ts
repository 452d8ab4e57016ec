// What machines write, as text that can be shown.

/** The longest line that is drawn; a browser lays out a longer one for seconds. */
const longest = 4000;

// CSI and OSC sequences (ECMA-48), then what is left of C0 and C1
const sequences = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]/g;
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text without what would steer a terminal or turn the direction of writing around. What cannot be shown is a sign for it. */
export function plain(text: string): string {
  return text.replace(sequences, "").replace(/\r\n?/g, "\n").replace(controls, (c) => (c <= "\u001f" ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\ufffd"));
}

/** The lines of a text; one that is too long is cut, and says so. */
export function lines(text: string): string[] {
  return text.split("\n").map((l) => (l.length > longest ? `${l.slice(0, longest)}… (${(l.length - longest).toLocaleString("en")} more characters)` : l));
}
