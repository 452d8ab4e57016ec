import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ended, signIn } from "../session.ts";
import { Field, ProblemBox, useAction } from "../ui/basic.tsx";

/** Where people show their token. It is exchanged for a cookie that no program can read. */
export function SignIn(): JSX.Element {
  const [token, setToken] = useState("");
  const action = useAction();
  return (
    <main class="signin">
      <h1>
        <img src="/favicon.svg" alt="" width="40" height="40" /> Rackstrap
      </h1>
      {ended.value && <p role="status">{ended.value}</p>}
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void action.run(() => signIn(token.trim()));
        }}
      >
        <Field
          label="Token"
          help={
            <>
              On the appliance: <code>rackstrap token create NAME --role operator</code>
            </>
          }
        >
          {(p) => <input {...p} type="password" autoFocus autocomplete="current-password" spellcheck={false} placeholder="rst_…" value={token} onInput={(e) => setToken(e.currentTarget.value)} />}
        </Field>
        <ProblemBox problem={action.problem} />
        <button type="submit" class="button primary" disabled={action.busy || token.trim() === ""} aria-busy={action.busy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
