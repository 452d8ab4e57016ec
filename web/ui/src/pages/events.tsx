import type { JSX } from "preact";

/** What happened. */
export default function Events(): JSX.Element {
  return <h1>Events</h1>;
}
