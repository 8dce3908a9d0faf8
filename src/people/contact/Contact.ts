/** A message to the operator from a website's contact form, and the token that admits it. */
import { Schema } from "effect"
import { Email } from "../../kernel/Email.ts"
import { StoredText } from "../../kernel/StoredText.ts"

const text = (most: number) =>
  StoredText.pipe(
    Schema.filter((text) => text.trim() !== "" && text.length <= most, {
      message: () => `must be a string of 1 to ${most} characters`
    })
  )

export const ContactMessage = Schema.Struct({
  name: text(200),
  email: Email,
  inquiryType: text(100),
  message: text(10_000),
  subscribe: Schema.optionalWith(Schema.Boolean, { default: () => false })
}).annotations({ identifier: "ContactMessage" })
export interface ContactMessage extends Schema.Schema.Type<typeof ContactMessage> {}

export const ClientTokenRequest = Schema.Struct({ service_client_id: Schema.optional(Schema.String) })

export const ClientToken = Schema.Struct({ token: Schema.String, expires_in: Schema.Int }).annotations({
  identifier: "ClientToken"
})
export interface ClientToken extends Schema.Schema.Type<typeof ClientToken> {}
