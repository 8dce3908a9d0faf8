/** What a letter to oneself holds. */
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

export const SelfLetterSent = Schema.Struct({ message: Schema.String, message_id: Schema.String }).annotations({
  identifier: "SelfLetterSent"
})
