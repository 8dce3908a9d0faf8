/** The URLs of the sandbox's simulated services. They exist only in a sandbox. */
import { Context, Schema } from "effect"

export const SandboxInfo = Schema.Struct({
  /** The OpenID Connect issuer. `POST {issuer}/token` signs in any address. */
  issuer: Schema.String,
  /** The URL of the levers that control faults, the clock, calls and credit. */
  control: Schema.String,
  client_id: Schema.String,
  service_client_id: Schema.String,
  oauth_client: Schema.Struct({ client_id: Schema.String, redirect_uri: Schema.String })
}).annotations({ identifier: "SandboxInfo" })
export interface SandboxInfo extends Schema.Schema.Type<typeof SandboxInfo> {}

/** A lever, as listed by `GET {control}`. */
export interface LeverNote {
  readonly method: string
  readonly url: string
  readonly does: string
  /** An example query and body. The caller replaces `{name}`. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface Steered {
  readonly info: SandboxInfo
  readonly levers: ReadonlyArray<LeverNote>
}

export class CurrentSandbox extends Context.Reference<CurrentSandbox>()("tollgate/sandbox/CurrentSandbox", {
  defaultValue: (): Steered | undefined => undefined
}) {}
