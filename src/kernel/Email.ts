/** Email addresses on the wire. Decoding trims and lowercases them. */
import { Schema } from "effect"

const rule = "must be an email address"

export const Email = Schema.String.pipe(
  Schema.maxLength(254, { message: () => rule }),
  Schema.transform(Schema.String, {
    strict: true,
    decode: (text) => text.trim().toLowerCase(),
    encode: (text) => text
  }),
  Schema.pattern(/^[^\s@<>"(),:;\\[\]\p{Cc}\p{Cs}]+@[^\s@<>"(),:;\\[\]\p{Cc}\p{Cs}]+$/u, {
    message: () => rule
  })
).annotations({ identifier: "Email", jsonSchema: { type: "string", format: "email" } })

/** Hides most of the address's local part: `a***@example.com`. */
export const masked = (email: string): string => {
  const at = email.lastIndexOf("@")
  return `${email.slice(0, Math.min(1, at))}***${email.slice(at)}`
}
