import type { JSX } from "preact";

/** Install machines, step by step. */
export default function Provision(): JSX.Element {
  return <h1>Provision</h1>;
}
