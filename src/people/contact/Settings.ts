/** Where contact messages are mailed to: `contact_email` in the configuration file. */
import { Context, Layer, Schema } from "effect"
import { NonEmpty } from "../../kernel/Setting.ts"

/** `undefined`: messages are stored and not mailed. */
export class ContactEmail extends Context.Reference<ContactEmail>()("tollgate/contact/ContactEmail", {
  defaultValue: (): string | undefined => undefined
}) {}

export const fields = { contact_email: Schema.optional(NonEmpty) }

export const layer = ({ contact_email }: { readonly contact_email?: string | undefined }) =>
  Layer.succeed(ContactEmail, contact_email)
