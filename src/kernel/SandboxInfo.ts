/** The address of the sandbox's outside world, for its controllers. Absent in every other deployment. */
import { Context, Schema } from "effect"

export const SandboxInfo = Schema.Struct({
  /** The OpenID Connect issuer; `POST {issuer}/token` signs any address in. */
  issuer: Schema.String,
  /** The levers: faults, clock, calls, credit. */
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
  /** A query and a body that it takes; `{name}` stands for what the caller knows. */
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Where the sandbox is, and what can be done to it. */
export interface Steered {
  readonly info: SandboxInfo
  readonly levers: ReadonlyArray<LeverNote>
}

export class CurrentSandbox extends Context.Reference<CurrentSandbox>()("tollgate/sandbox/CurrentSandbox", {
  defaultValue: (): Steered | undefined => undefined
}) {}
