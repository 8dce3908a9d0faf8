/**
 * What a letter to oneself holds, how names stand in letters to others, and how many letters an account may cause.
 *
 * Where the specification is silent:
 * - What one account causes by invitations, transfers and resends is counted in the outbox, in the transaction that adds the letter
 *   (`letter_limits` of the configuration). A resend beyond the limits is refused, whoever the recipient is. Mail to oneself is paid for
 *   and does not count. Names lose whole links and the dots within words; a gift's message stands as it was written.
 * - Links in mails begin with `public_url` of the configuration, else with the address the service listens on.
 */
import { Schema } from "effect"

const text = (most: number) =>
  Schema.String.pipe(
    Schema.filter((text) => text.trim() !== "" && text.length <= most, {
      message: () => `a text of 1 to ${most} characters`
    })
  )

export const SelfLetter = Schema.Struct({
  subject: text(200).pipe(Schema.filter((text) => !/[\r\n]/.test(text), { message: () => "a single line" })),
  body: text(100_000)
}).annotations({ identifier: "SelfLetter" })
export interface SelfLetter extends Schema.Schema.Type<typeof SelfLetter> {}

export const SelfLetterSent = Schema.Struct({ message: Schema.String, message_id: Schema.String }).annotations({
  identifier: "SelfLetterSent"
})

const nameMax = 100

/**
 * A name that somebody chose, as it stands in a letter to somebody else: on one line, with nothing that a mail program would make a
 * link of. Of a name of which nothing is left, `otherwise` stands there.
 */
export const plainName = (name: string, otherwise: string): string => {
  const plain = name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    // What turns the direction of writing could make one text look like another.
    .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "")
    .replace(/[a-z][a-z0-9+.-]*:\/\/\S*|\bwww[.．。｡․]\S*|\b(?:mailto|tel|sms):\S*/giu, " ")
    // A dot within a word makes a host of it; some scripts have dots of their own, which browsers read alike.
    .replace(/(?<=\S)[.．。｡․](?=\S)/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
  return plain === "" ? otherwise : [...plain].slice(0, nameMax).join("")
}
