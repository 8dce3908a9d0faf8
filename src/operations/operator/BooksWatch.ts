/** Lets the operator verify the books and check the quick invariants. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Clock, Effect, Option } from "effect"
import type { Looked } from "../../books/ledger/rules/Check.ts"
import * as Verified from "../../books/ledger/audit/Verifications.ts"
import type { VerifierContract } from "../../books/ledger/audit/Verifier.ts"
import type { AuditLogContract } from "./AuditLog.ts"
import type { InvariantChecks, Verification, Verifications } from "./Figures.ts"
import { AlreadyRunning } from "./Problems.ts"
import type { OperatorWatchContract } from "./Watch.ts"

const recentMax = 20

interface Parts {
  readonly sql: SqlClient
  readonly verifier: VerifierContract
  readonly log: AuditLogContract
}

/** An effect that loads the checks and yields the effect that runs them. */
export type LoadChecks = Effect.Effect<Effect.Effect<ReadonlyArray<Looked>, never, SqlClient>>

export const verifications = ({ sql, verifier }: Parts): Effect.Effect<Verifications> =>
  Effect.gen(function* () {
    const recent = yield* Verified.recent(sql, recentMax)
    const held = yield* Verified.lastClean(sql)
    const newest = yield* Verified.newest(sql)
    return {
      running: verifier.running() ?? null,
      last: recent[0] === undefined ? null : verificationOf(recent[0]),
      last_held: held === undefined ? null : verificationOf(held),
      recent: recent.map(verificationOf),
      behind: {
        entries: Math.max(0, newest.entry - (held?.checkpoint.entry ?? 0)),
        records: Math.max(0, newest.record - (held?.checkpoint.record ?? 0))
      },
      found: verifier.found().map(({ check, message }) => ({ check, message }))
    }
  })

const verificationOf = ({ at, findings, checkpoint, millis, whole }: Verified.Verification): Verification => ({
  at,
  whole,
  findings,
  millis,
  entry: checkpoint.entry,
  record: checkpoint.record
})

export const verify = (parts: Parts): OperatorWatchContract["verify"] =>
  Effect.fn("OperatorWatch.verify")(function* (by, whole) {
    const { log, verifier } = parts
    const act = { action: "verify", details: { whole } }
    if (!(yield* verifier.start(whole))) {
      const problem = new AlreadyRunning()
      yield* log.refused(by, act, problem.code ?? "")
      return yield* problem
    }
    yield* log.done(by, act)
    return yield* verifications(parts)
  })

/** Checks the invariants. Fails with `AlreadyRunning` while another check runs on this node. */
export const invariants = ({ log, sql }: Parts, load: LoadChecks): OperatorWatchContract["invariants"] => {
  const lock = Effect.unsafeMakeSemaphore(1)
  const check = runChecks(sql, load)
  return Effect.fn("OperatorWatch.invariants")(function* (by) {
    const checked = yield* lock.withPermitsIfAvailable(1)(check)
    if (Option.isNone(checked)) return yield* new AlreadyRunning()
    const broken = checked.value.checks.filter(({ holds }) => !holds).length
    yield* log.done(by, { action: "invariants", details: { broken } })
    return checked.value
  })
}

const runChecks = (sql: SqlClient, load: LoadChecks): Effect.Effect<InvariantChecks> =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const checks = yield* Effect.provideService(Effect.flatten(load), SqlClient, sql)
    const at = yield* Clock.currentTimeMillis
    return {
      at,
      millis: at - began,
      checks: checks.map(({ findings, name }) => ({
        name,
        holds: findings.length === 0,
        findings: findings.map(({ message }) => message)
      }))
    }
  })
