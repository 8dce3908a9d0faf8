/** The button that signs in with a passkey. The browser offers the user's passkeys for this service. */
import { Fingerprint } from "lucide-react"
import { useState } from "react"
import { consoleUrl } from "../../app/Base.ts"
import type { Schemas } from "../../app/Client.ts"
import { personSession } from "../../app/PersonSession.ts"
import { fetchResponse, refusalOf } from "../../app/Refusal.ts"
import { isDismissed, signWithPasskey } from "../../app/WebAuthn.ts"
import { Button } from "../../parts/Button.tsx"
import { advice } from "../../parts/States.tsx"
import { texts } from "../../texts.ts"

const post = async (path: string, body?: object): Promise<unknown> => {
  const response = await fetchResponse(consoleUrl(`passkeys/${path}`), {
    method: "POST",
    credentials: "same-origin",
    ...(body !== undefined && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) })
  })
  if (!response.ok) throw await refusalOf(response)
  return ((await response.json()) as { readonly result: unknown }).result
}

const signIn = async (): Promise<void> => {
  const options = (await post("challenge")) as Schemas["PasskeyRequestOptions"]
  await post("sign-in", await signWithPasskey(options))
  await personSession.renew()
}

export const ByPasskey = () => {
  const [isPending, setPending] = useState(false)
  const [problem, setProblem] = useState<string>()
  const begin = async (): Promise<void> => {
    setPending(true)
    setProblem(undefined)
    try {
      await signIn()
    } catch (error) {
      setProblem(isDismissed(error) ? texts.signIn.passkeyDismissed : advice(error))
    }
    setPending(false)
  }
  return (
    <>
      <Button icon={Fingerprint} isPending={isPending} onPress={() => void begin()}>
        {texts.signIn.withPasskey}
      </Button>
      {problem === undefined ? null : (
        <p className="signin-error" role="alert">
          {problem}
        </p>
      )}
    </>
  )
}
