/** Applications: what holds an API key. The key itself is shown once, when it is made; what is kept is its keyed hash. */
import { Schema } from "effect"
import { AccountId, ApplicationId } from "../kernel/Ids.ts"
import { Moment } from "../kernel/Moment.ts"
import { Paginated } from "../kernel/Page.ts"
import { StoredText } from "../kernel/StoredText.ts"

const Name = StoredText.pipe(
  Schema.filter((name) => name.trim() !== "" && name.length <= 100, { message: () => "a text of 1 to 100 characters" })
)
const Description = StoredText.pipe(Schema.maxLength(1_000, { message: () => "a text of up to 1000 characters" }))

export const NewApplication = Schema.Struct({
  name: Name,
  description: Schema.optionalWith(Description, { default: () => "" })
}).annotations({ identifier: "NewApplication" })
export interface NewApplication extends Schema.Schema.Type<typeof NewApplication> {}

export const ApplicationChange = Schema.Struct({
  name: Schema.optional(Name),
  description: Schema.optional(Description)
}).annotations({ identifier: "ApplicationChange" })
export interface ApplicationChange extends Schema.Schema.Type<typeof ApplicationChange> {}

const fields = {
  id: ApplicationId,
  name: Schema.String,
  description: Schema.String,
  /** Who made it. */
  account_id: AccountId,
  key_hash: Schema.String,
  /** The first characters of the key, for telling keys apart. */
  key_prefix: Schema.String,
  last_used_at: Schema.NullOr(Moment),
  created_at: Moment,
  updated_at: Moment
} as const

export const Application = Schema.Struct(fields).annotations({ identifier: "Application" })
export interface Application extends Schema.Schema.Type<typeof Application> {}

export const ApplicationWithKey = Schema.Struct({ ...fields, api_key: Schema.String }).annotations({
  identifier: "ApplicationWithKey"
})
export interface ApplicationWithKey extends Schema.Schema.Type<typeof ApplicationWithKey> {}

export const ApplicationPage = Paginated(Application).annotations({ identifier: "ApplicationPage" })
