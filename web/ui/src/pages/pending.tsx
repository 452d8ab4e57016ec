import type { JSX } from "preact";

/** Machines that wait for a human. */
export default function Pending(): JSX.Element {
  return <h1>Pending</h1>;
}
