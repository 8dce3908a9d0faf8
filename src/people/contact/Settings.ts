/** Reads the settings for contact messages: `contact_email` and `contact_kept_days` in the configuration file. */
import { Context, Layer, Schema } from "effect"
import { Count, NonEmpty } from "../../kernel/Setting.ts"

/** The address that receives messages for the operator. Without an address, the service only stores messages. */
export class ContactEmail extends Context.Reference<ContactEmail>()("tollgate/contact/ContactEmail", {
  defaultValue: (): string | undefined => undefined
}) {}

const retentionDaysPreset = 180

export class ContactKeptDays extends Context.Reference<ContactKeptDays>()("tollgate/contact/ContactKeptDays", {
  defaultValue: (): number => retentionDaysPreset
}) {}

export const fields = {
  contact_email: Schema.optional(NonEmpty),
  contact_kept_days: Schema.optionalWith(Count, { default: () => retentionDaysPreset })
}

export interface ContactFacts {
  readonly contact_email?: string | undefined
  readonly contact_kept_days: number
}

export const layer = ({ contact_email, contact_kept_days }: ContactFacts) =>
  Layer.merge(Layer.succeed(ContactEmail, contact_email), Layer.succeed(ContactKeptDays, contact_kept_days))
