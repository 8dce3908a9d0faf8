/** Reads the settings for contact messages: `contact_email` and `contact_kept_days` in the configuration file. */
import { Context, Layer, Schema } from "effect"
import { Count, NonEmpty } from "../../kernel/Setting.ts"

/** Where the operator gets messages. Without an address, messages are only stored. */
export class ContactEmail extends Context.Reference<ContactEmail>()("tollgate/contact/ContactEmail", {
  defaultValue: (): string | undefined => undefined
}) {}

const keptDaysPreset = 180

/** A message is deleted after this many days. */
export class ContactKeptDays extends Context.Reference<ContactKeptDays>()("tollgate/contact/ContactKeptDays", {
  defaultValue: (): number => keptDaysPreset
}) {}

export const fields = {
  contact_email: Schema.optional(NonEmpty),
  contact_kept_days: Schema.optionalWith(Count, { default: () => keptDaysPreset })
}

export interface ContactFacts {
  readonly contact_email?: string | undefined
  readonly contact_kept_days: number
}

export const layer = ({ contact_email, contact_kept_days }: ContactFacts) =>
  Layer.merge(Layer.succeed(ContactEmail, contact_email), Layer.succeed(ContactKeptDays, contact_kept_days))
