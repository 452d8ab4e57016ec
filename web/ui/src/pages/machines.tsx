import type { JSX } from "preact";

/** All machines. */
export default function Machines(): JSX.Element {
  return <h1>Machines</h1>;
}
