import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { storable } from "../../http/lanes/Answer.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { InsufficientScope } from "../../people/credentials/Problems.ts"
import { MailUnavailable } from "../../people/mail/Problems.ts"
import { Mail } from "../../upstream/mail/Mail.ts"
import { CurrentOperator } from "../operator/CurrentOperator.ts"
import { keyset } from "../operator/Keyset.ts"
import { personLineOf } from "../operator/Lines.ts"
import type { SignedInOperator } from "../operator/Operator.ts"
import { ProvisioningApi } from "./Api.ts"
import { Provisioning } from "./Provisioning.ts"
import type { PersonWanted } from "./Provision.ts"

const answered = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(storable(effect), (result) => envelope(result))

/** Runs an action as the current operator and wraps its result in the envelope. */
const by = <A, E, R>(act: (operator: SignedInOperator) => Effect.Effect<A, E, R>) =>
  answered(Effect.flatMap(CurrentOperator, act))

/** Checks for the scope `grants`, which every request that gives credit requires. */
const mayGive = ({ scopes }: SignedInOperator, wanted: Partial<Pick<PersonWanted, "allowance" | "credit_usd">>) =>
  scopes === undefined || scopes.includes("grants") || (wanted.allowance ?? wanted.credit_usd) === undefined
    ? Effect.void
    : new InsufficientScope({ message: "this management key needs the scope grants to give credit", scope: "grants" })

/**
 * Checks for the scope `tenants`. Adding a person to a tenant requires it, because a member can spend the tenant's credit and an invited owner can
 * change the tenant.
 */
const mayPlace = ({ scopes }: SignedInOperator, tenant: string | undefined) =>
  scopes === undefined || scopes.includes("tenants") || tenant === undefined
    ? Effect.void
    : new InsufficientScope({
        message: "this management key needs the scope tenants to add a person to a tenant",
        scope: "tenants"
      })

const mayMake = (me: SignedInOperator, wanted: Pick<PersonWanted, "allowance" | "credit_usd" | "team_external_id">) =>
  Effect.zipRight(mayGive(me, wanted), mayPlace(me, wanted.team_external_id))

export const ProvisioningHttp = HttpApiBuilder.group(
  contract.add(ProvisioningApi),
  "operatorProvisioning",
  Effect.fnUntraced(function* (handlers) {
    const { keys, letters, people, tenants } = yield* Provisioning
    const mail = yield* Mail
    return handlers
      .handle("people", ({ urlParams: { before, limit } }) =>
        answered(
          Effect.map(people.list(before, limit + 1), (found) => keyset(found.map(personLineOf), limit, ({ id }) => id))
        )
      )
      .handle("createPerson", ({ payload }) =>
        by((me) => Effect.zipRight(mayMake(me, payload), people.create(me, payload)))
      )
      .handle("putPerson", ({ path: { external_id }, payload }) =>
        by((me) => Effect.zipRight(mayMake(me, payload), people.put(me, external_id, payload)))
      )
      .handle("findPerson", ({ path }) => answered(people.find(path.external_id)))
      .handle("removePerson", ({ path }) => by((me) => people.remove(me, path.external_id)))
      .handle("createTenant", ({ payload }) =>
        by((me) => Effect.zipRight(mayGive(me, payload), tenants.create(me, payload)))
      )
      .handle("putTenant", ({ path: { external_id }, payload }) =>
        by((me) => Effect.zipRight(mayGive(me, payload), tenants.put(me, external_id, payload)))
      )
      .handle("findTenant", ({ path }) => answered(tenants.find(path.external_id)))
      .handle("removeTenant", ({ path }) => by((me) => tenants.remove(me, path.external_id)))
      .handle("keys", ({ urlParams: { before, limit } }) =>
        answered(Effect.map(keys.list(before, limit + 1), (found) => keyset(found, limit, ({ id }) => id)))
      )
      .handle("invite", ({ payload }) =>
        by((me) =>
          mayPlace(me, payload.tenant_id).pipe(
            Effect.zipRight(mail === undefined ? new MailUnavailable() : Effect.void),
            Effect.zipRight(letters.invite(me, payload))
          )
        )
      )
      .handle("putKey", ({ path, payload }) => by((me) => keys.put(me, path.external_id, payload)))
      .handle("findKey", ({ path }) => answered(keys.find(path.external_id)))
      .handle("removeKey", ({ path }) => by((me) => keys.remove(me, path.external_id)))
  })
)
