/**
 * Emails that users send to themselves, and the formatting of names in emails to others.
 *
 * Where the specification is silent:
 * - Invitations, transfers and resends count against the email limits (`letter_limits`) of the account that causes them, in the transaction that
 *   queues the email. A resend beyond the limits is rejected for every recipient. An email to oneself is charged and does not count.
 * - Emails show names without links and without dots within words. The message of a gift is unchanged.
 * - Links in emails begin with the configured `public_url`. It defaults to the address that the service listens on.
 */
import { Schema } from "effect"

const text = (most: number) =>
  Schema.String.pipe(
    Schema.filter((text) => text.trim() !== "" && text.length <= most, {
      message: () => `must be a string of 1 to ${most} characters`
    })
  )

export const SelfLetter = Schema.Struct({
  subject: text(200).pipe(Schema.filter((text) => !/[\r\n]/.test(text), { message: () => "must be a single line" })),
  body: text(100_000)
}).annotations({ identifier: "SelfLetter" })
export interface SelfLetter extends Schema.Schema.Type<typeof SelfLetter> {}

export const SelfLetterSent = Schema.Struct({ message: Schema.String, message_id: Schema.String }).annotations({
  identifier: "SelfLetterSent"
})

const nameMax = 100

/** Formats a name for an email: one line, without text that a mail program would turn into a link. Returns `otherwise` if the result is empty. */
export const plainName = (name: string, otherwise: string): string => {
  const plain = name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    // Direction marks could make one string look like another.
    .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "")
    .replace(/[a-z][a-z0-9+.-]*:\/\/\S*|\bwww[.．。｡․]\S*|\b(?:mailto|tel|sms):\S*/giu, " ")
    // A dot within a word could turn it into a host name. Browsers treat the dots of other scripts like a plain dot.
    .replace(/(?<=\S)[.．。｡․](?=\S)/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
  return plain === "" ? otherwise : [...plain].slice(0, nameMax).join("")
}
