import type { JSX } from "preact";

/** Subnets and leases. */
export default function Networks(): JSX.Element {
  return <h1>Networks</h1>;
}
