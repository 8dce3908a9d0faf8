/** A service in its sandbox, with the people whom the payment processor's events identify. */
import { createHmac } from "node:crypto"
import { webhookSecret } from "../../../src/sandbox/PaymentWorld.ts"
import { start } from "../../../test/support/Service.ts"
import type { Answer, Person, Service } from "../../../test/support/Service.ts"
import { restOf } from "../Rest.ts"
import type { AtRest } from "../Rest.ts"

export interface World {
  readonly service: Service
  /**
   * The people. Only unsigned events refer to `honest`, who must not get credit. `payer` has payments, refunds and disputes. Signed nonsense refers
   * to `nonsense`.
   */
  readonly people: Readonly<Record<"honest" | "payer" | "nonsense", Person>>
  readonly deliver: (body: Buffer | string, signature: string | undefined) => Promise<Answer>
  readonly rest: () => Promise<AtRest>
  readonly end: () => Promise<void>
}

/** Signs a body with a secret, at a Unix time in seconds. */
export const signatureOf = (body: Buffer | string, at: number, secret = webhookSecret): string =>
  createHmac("sha256", secret).update(`${at}.`).update(body).digest("hex")

export const signed = (body: Buffer | string): string => {
  const at = Math.floor(Date.now() / 1_000)
  return `t=${at},v1=${signatureOf(body, at)}`
}

export const make = async (): Promise<World> => {
  const service = await start({ env: { LOG_LEVEL: "error" } })
  const people = {
    honest: await service.signIn("honest@example.com"),
    payer: await service.signIn("payer@example.com"),
    nonsense: await service.signIn("nonsense@example.com")
  }
  return {
    service,
    people,
    deliver: (body, signature) =>
      service.call("/v1/webhooks/stripe", {
        method: "POST",
        raw: typeof body === "string" ? body : Uint8Array.from(body),
        headers: {
          "content-type": "application/json",
          ...(signature !== undefined && { "stripe-signature": signature })
        }
      }),
    rest: restOf(service),
    end: () => service.discard()
  }
}
