import type { JSX } from "preact";

/** One template. */
export default function Template(): JSX.Element {
  return <h1>Template</h1>;
}
