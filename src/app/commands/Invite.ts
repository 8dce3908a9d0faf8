/** `tollgate invite`: emails a person a link that opens their console or lets them join a tenant. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Option } from "effect"
import type { TenantId } from "../../kernel/Ids.ts"
import { toIso } from "../../kernel/Moment.ts"
import { Provisioning } from "../../operations/provisioning/Provisioning.ts"
import { json, noTenant, oneLine, printed } from "./Options.ts"
import { emailOf } from "./ProvisionOptions.ts"
import { commander, mailingConfig, provisioningOf } from "./Provisions.ts"
import { fromEnvironment, refuse } from "./Report.ts"

const options = {
  email: Options.text("email").pipe(Options.withDescription("the address to send the email to")),
  name: Options.text("name").pipe(
    Options.withDescription("the person's name, used if they have no account yet"),
    Options.optional
  ),
  tenant: Options.text("tenant").pipe(
    Options.withDescription("the tenant to join (ten_…); without this option, the link opens the person's own console"),
    Options.optional
  ),
  role: Options.choice("role", ["member", "admin", "owner"]).pipe(
    Options.withDescription("the person's role in the tenant (member by default)"),
    Options.optional
  ),
  config: Options.text("config").pipe(
    Options.withDescription("the service's configuration file, which sets the mail server and public_url")
  ),
  json
}

export const command = Command.make("invite", options, ({ config, email, json, name, role, tenant }) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const by = yield* commander
    if (Option.isSome(role) && Option.isNone(tenant)) return yield* refuse("--role: requires --tenant")
    const input = {
      email: yield* emailOf(email),
      name: Option.isNone(name) ? undefined : yield* oneLine("--name", name.value),
      tenant_id: Option.getOrUndefined(tenant) as TenantId | undefined,
      role: Option.getOrUndefined(role)
    }
    const mailing = yield* mailingConfig(config, "--config")
    const sent = yield* Effect.flatMap(Provisioning, ({ letters }) => letters.invite(by, input)).pipe(
      Effect.mapError((problem) =>
        refuse(problem._tag === "TenantNotFound" ? noTenant(problem.tenant_id) : problem.message)
      ),
      Effect.provide(provisioningOf(facts, mailing))
    )
    const expires_at = toIso(sent.expires_at)
    if (json) return yield* printed({ ...sent, expires_at })
    yield* Console.log(
      `queued the email to ${sent.email}; the running service will send it within a minute, and its link works until ${expires_at}`
    )
  })
).pipe(Command.withDescription("Email a person a link that opens their console or lets them join a tenant"))
