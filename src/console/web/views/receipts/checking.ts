/** Fetches a receipt and verifies it in the browser, against the figures that the page shows. */
import { ReceiptInvalid, verify } from "tollgate/receipts"
import type { ReceiptEntry, VerifiedReceipt } from "tollgate/receipts"
import { api, responseBody, publicApi, tenantId } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { Refusal } from "../../app/Refusal.ts"
import { receiptTexts as texts } from "../../texts/receipts.ts"
import { keyName, evaluateTrust } from "./trust.ts"
import type { Trust, WitnessKey } from "./trust.ts"

type Receipt = Schemas["Receipt"]

/** A charge or ledger entry, with the figures that its receipt must contain. Amounts are in nano-USD. */
export interface Subject {
  readonly of: { readonly usage_id: string } | { readonly number: number }
  readonly states: Partial<
    Pick<ReceiptEntry, "account" | "amount" | "balance" | "number" | "reference" | "source" | "type">
  >
}

/** A witness that cosigned the checkpoint, with its signature's time and the trusted key that verified it. */
export interface Cosigned {
  readonly name: string
  readonly time: number
  readonly key: WitnessKey
}

export interface Signatures {
  readonly cosigned: ReadonlyArray<Cosigned>
  /** The names on signatures without a known key. These signatures are unverified and prove nothing. */
  readonly unknown: ReadonlyArray<string>
}

interface Fetched {
  readonly receipt: Receipt
  readonly trust: Trust
  readonly fetchedAt: number
}

export type Checked =
  | (Fetched & { readonly kind: "verified"; readonly found: VerifiedReceipt; readonly signatures: Signatures })
  | (Fetched & { readonly kind: "invalid"; readonly why: string })
  /** The log does not contain the entry yet. */
  | { readonly kind: "pending" }
  /** This user cannot get a receipt, for the reason in `why`. */
  | { readonly kind: "none"; readonly why: string }
  /** The browser lacks the required cryptography. */
  | { readonly kind: "unsupported"; readonly why: string }

const fetched = ({ of }: Subject): Promise<Receipt> =>
  "usage_id" in of
    ? responseBody(api.GET("/v1/usage/{usage_id}/receipt", { params: { path: of } }))
    : responseBody(
        api.GET("/v1/tenants/{tenant_id}/billing/ledger/{number}/receipt", {
          params: { path: { tenant_id: tenantId(), number: String(of.number) } }
        })
      )

/** Returns the result for an expected error, or `undefined` for any other error. */
const expectedFailure = (error: unknown): Checked | undefined => {
  if (!(error instanceof Refusal)) return undefined
  switch (error.code) {
    case "not_in_log":
      return { kind: "pending" }
    case "nothing_charged":
      return { kind: "none", why: texts.free }
    case "paid_by_another_tenant":
      return { kind: "none", why: texts.paidByAnother }
    default:
      return undefined
  }
}

/** Returns a checkpoint's signers, each as the prefix of its verifier key: `<name>+<id>+`. */
const signersOn = (checkpoint: string): ReadonlyArray<string> =>
  checkpoint
    .slice(checkpoint.lastIndexOf("\n\n") + 2)
    .split("\n")
    .flatMap((line) => {
      const [, name, base64 = ""] = /^\u2014 (\S+) ([A-Za-z0-9+/=]+)$/.exec(line) ?? []
      const id = Array.from(atob(base64).slice(0, 4), (char) => char.charCodeAt(0).toString(16).padStart(2, "0")).join(
        ""
      )
      return name === undefined ? [] : [`${name}+${id}+`]
    })

/** Returns the signers of a verified checkpoint, with and without a trusted key. */
const signaturesOf = (checkpoint: string, { cosigned, origin }: VerifiedReceipt, { witnesses }: Trust): Signatures => {
  const signers = signersOn(checkpoint).filter((signer) => keyName(signer) !== origin)
  const keyOf = (signer: string) => witnesses.find(({ key }) => key.startsWith(signer))
  return {
    cosigned: signers.flatMap((signer) => {
      const [key, signed] = [keyOf(signer), cosigned.find(({ name }) => name === keyName(signer))]
      return key === undefined || signed === undefined ? [] : [{ ...signed, key }]
    }),
    unknown: signers.filter((signer) => keyOf(signer) === undefined).map(keyName)
  }
}

/** Returns the name of the first figure that differs between the receipt and the page, or `undefined` if they agree. */
const differingFigure = ({ states }: Subject, entry: ReceiptEntry): keyof Subject["states"] | undefined =>
  (Object.keys(states) as ReadonlyArray<keyof Subject["states"]>).find((name) => states[name] !== entry[name])

const verified = async (subject: Subject, { fetchedAt, receipt, trust }: Fetched): Promise<Checked> => {
  try {
    const found = await verify(receipt, [...trust.keys, ...trust.witnesses.map(({ key }) => key)])
    const wrong = differingFigure(subject, found.entry)
    return wrong === undefined
      ? {
          kind: "verified",
          receipt,
          trust,
          fetchedAt,
          found,
          signatures: signaturesOf(receipt.checkpoint, found, trust)
        }
      : { kind: "invalid", receipt, trust, fetchedAt, why: texts.contradicts(texts.figures[wrong]) }
  } catch (error) {
    if (error instanceof ReceiptInvalid) return { kind: "invalid", receipt, trust, fetchedAt, why: error.message }
    if (error instanceof DOMException && error.name === "NotSupportedError")
      return { kind: "unsupported", why: texts.noEd25519 }
    throw error
  }
}

/** Fetches and verifies a receipt. Rejects if the receipt or the keys cannot be fetched. */
export const check = async (subject: Subject): Promise<Checked> => {
  // Browsers offer cryptography only to pages served over HTTPS or from localhost.
  if (!isSecureContext) return { kind: "unsupported", why: texts.insecure }
  let receipt: Receipt
  try {
    receipt = await fetched(subject)
  } catch (error) {
    const answer = expectedFailure(error)
    if (answer === undefined) throw error
    return answer
  }
  const served = await responseBody(publicApi.GET("/v1/log/keys"))
  const fetchedAt = Date.now()
  return verified(subject, { receipt, fetchedAt, trust: evaluateTrust(served, new Date(fetchedAt).toISOString()) })
}
