import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { leave, me, signIn } from "../session.ts";
import { Button, Field, ProblemBox, useAction } from "../ui/basic.tsx";

/** Where people show their token. It is exchanged for a cookie that no program can read. */
export function SignIn(): JSX.Element {
  return (
    <main class="signin">
      <h1>
        <img src="/favicon.svg" alt="" width="40" height="40" /> Rackstrap
      </h1>
      <Form />
    </main>
  );
}

/** Over a page whose session has ended: what was typed there is not lost. */
export function SignInAgain(): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const show = () => ref.current?.showModal();
  useEffect(() => {
    show();
  }, []);
  return (
    <dialog ref={ref} class="again" aria-labelledby="again" onCancel={(e) => e.preventDefault()} onClose={show}>
      <div class="dialog">
        <h2 id="again">The session has ended</h2>
        <p>{`Sign in again as ${me.value?.name}, and the page goes on where it was. Whoever signs in as somebody else begins anew.`}</p>
        <Form />
        <Button kind="quiet" onPress={leave}>
          Forget the page and what was typed
        </Button>
      </div>
    </dialog>
  );
}

function Form(): JSX.Element {
  const [token, setToken] = useState("");
  const action = useAction();
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        if (!action.busy) void action.run(() => signIn(token.trim()));
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
  );
}
