/**
 * Planted mistakes. Each disables a guard in the service's code, only in the simulation's build (`Bundle`). The simulation must detect it. Each
 * fragment must occur in its file exactly once (`test/simulation/Mistakes.test.ts`).
 */
import type { Change } from "./Bundle.ts"

export interface Mistake {
  readonly name: string
  /** The property that the guard ensures. */
  readonly guard: string
  readonly changes: ReadonlyArray<Change>
}

const mistake = (
  name: string,
  guard: string,
  ...changes: ReadonlyArray<readonly [file: string, text: string, instead: string]>
): Mistake => ({
  name,
  guard,
  changes: changes.map(([file, text, instead]) => ({ file: `src/${file}`, text, instead }))
})

export const mistakes: ReadonlyArray<Mistake> = [
  // ---- the books ----
  mistake("reservation-stays", "a call that ends releases its reservation", [
    "books/ledger/rules/Books.ts",
    "account.reserved - amount,\n    charged ?",
    "account.reserved,\n    charged ?"
  ]),
  mistake("call-ends-twice", "an ended call has no reservation to settle", [
    "books/ledger/rules/Books.ts",
    "  draft.release(call)\n  if (reservation.released",
    "  if (reservation.released"
  ]),
  mistake("poor-are-admitted", "a payer who cannot pay the minimum is refused", [
    "books/ledger/rules/Books.ts",
    "if (free < least) {",
    "if (free < 0n) {"
  ]),
  mistake(
    "limit-of-a-key",
    "a key is admitted within its limit",
    ["books/ledger/rules/Budget.ts", "if (isEmpty || left < least) return unit", "if (isEmpty) return unit"],
    [
      "books/ledger/rules/Books.ts",
      "const amount = limit === undefined ? within : smaller(within, limit)",
      "const amount = within"
    ],
    [
      "books/ledger/rules/Books.ts",
      "const payable = amount + (left === undefined ? free : smaller(free, left))",
      "const payable = amount + free"
    ]
  ),
  mistake("limit-forgets-what-is-open", "a limit counts the reservations of open calls", [
    "books/ledger/rules/Budget.ts",
    "largest(limit - budget.spent - budget.reserved, 0n)",
    "largest(limit - budget.spent, 0n)"
  ]),
  mistake("budget-is-not-corrected", "a settlement corrects the budgets of its call", [
    "books/ledger/rules/Counting.ts",
    "for (const budget of budgets) {\n    const isServed",
    "for (const budget of budgets.slice(0, 0)) {\n    const isServed"
  ]),
  mistake("budget-is-not-charged", "a charge counts against the budgets of its call", [
    "books/ledger/rules/Counting.ts",
    "spent: isServed ? collected : 0n,",
    "spent: 0n,"
  ]),
  mistake("budget-counts-twice", "a charge counts once against a budget", [
    "books/ledger/rules/Counting.ts",
    "spent: isServed ? collected : 0n,",
    "spent: isServed ? 2n * collected : 0n,"
  ]),
  mistake("run-wider-than-parent", "a run is not wider than its parent", [
    "people/runs/Within.ts",
    "if (most === undefined || own <= most) continue",
    "if (most === undefined || own >= 0) continue"
  ]),
  mistake("period-loses-what-is-open", "a new period retains the reservations of open calls", [
    "books/ledger/rules/Budget.ts",
    "ceiling: ceilingOf(terms, at, budget.reserved)",
    "reserved: 0n,\n      tokens_reserved: 0,\n      open: 0,\n      ceiling: ceilingOf(terms, at, 0n)"
  ]),
  mistake("released-at-one-level", "a settlement releases the reservation in every budget", [
    "books/ledger/rules/Counting.ts",
    "reserved: amount,\n        tokens_reserved: tokens,",
    "reserved: budget === budgets[0] ? amount : 0n,\n        tokens_reserved: budget === budgets[0] ? tokens : 0,"
  ]),
  mistake("notify-refuses", "a budget that only notifies refuses no call", [
    "books/ledger/rules/Budget.ts",
    'if (mode === "notify") return undefined',
    'if (mode === "never") return undefined'
  ]),
  mistake("reserved-credit-is-sent", "reserved credit cannot be sent", [
    "books/ledger/rules/Books.ts",
    "if (amount <= 0n || amount > available)",
    "if (amount <= 0n || amount > balanceOf(account))"
  ]),
  mistake("granted-credit-is-sent", "only giftable credit can be sent", [
    "books/ledger/rules/Books.ts",
    "if (amount > account.giftable) return",
    "if (amount > balanceOf(account)) return"
  ]),
  mistake("giftable-is-spent-first", "a charge spends granted credit first", [
    "books/ledger/rules/Books.ts",
    "const fromGranted = collected < account.granted ? collected : account.granted",
    "const fromGranted = 0n"
  ]),
  mistake("more-is-taken-back-than-there-is", "an amount taken back is bounded by the available credit", [
    "books/ledger/rules/Books.ts",
    "const taken = larger(smaller(amount, free), 0n)",
    "const taken = amount"
  ]),
  mistake(
    "transfers-stay",
    "an unanswered transfer expires",
    ["money/transfers/Expiry.ts", "const { failed } = yield* expireDue", "const { failed } = { failed: 0 }"],
    ["money/transfers/Expiry.ts", "if (next === null) return pauseMax", "if (next !== undefined) return pauseMax"],
    ["money/transfers/Transfers.ts", "yield* Effect.catchAll(expireDue, () => Effect.void)", "yield* Effect.void"]
  ),
  mistake("unreadable-database", "a temporary read failure of the database is not a defect of the service", [
    "http/lanes/Fault.ts",
    "if (error instanceof SqlError && isStorageFault(error))",
    "if (error instanceof SqlError && !isStorageFault(error))"
  ]),
  mistake("escrow-ends-twice", "a transfer ends only from the state pending", [
    "money/transfers/Escrow.ts",
    "WHERE id = ${row.id} AND status = 'pending' AND ${inTime} RETURNING id",
    "WHERE id = ${row.id} AND ${inTime} RETURNING id"
  ]),
  mistake("released-calls-are-free", "a call that settles after its release is still charged", [
    "books/ledger/rules/Books.ts",
    "if (reservation === undefined || (reservation.released === true && !isDue(outcome)))",
    "if (reservation === undefined || reservation.released === true)"
  ]),
  // ---- writing the books ----
  mistake("locked-database", "a locked or full database is a temporary fault, and the write is retried", [
    "books/ledger/write/DatabaseFault.ts",
    "^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY",
    "^SQLITE_(READONLY"
  ]),
  mistake("full-disk", "a full disk is a temporary fault", [
    "books/ledger/write/DatabaseFault.ts",
    "BUSY|LOCKED|FULL|IOERR|",
    "BUSY|LOCKED|IOERR|"
  ]),
  mistake("failing-disk", "an I/O error is a temporary fault", [
    "books/ledger/write/DatabaseFault.ts",
    "BUSY|LOCKED|FULL|IOERR|",
    "BUSY|LOCKED|FULL|"
  ]),
  mistake("no-rollback", "a transaction that fails is rolled back", [
    "books/ledger/write/WriterThread.ts",
    'if (db.inTransaction) prepare("ROLLBACK").run()',
    ""
  ]),
  mistake("memory-of-what-failed", "the cached state of a failed batch is dropped", [
    "books/ledger/write/WriterThread.ts",
    "memory.forget()\n    if (db.inTransaction)",
    "if (db.inTransaction)"
  ]),
  mistake("demands-are-ignored", "a statement that does not find its rows refuses its transaction", [
    "books/ledger/write/Batch.ts",
    "if (rows === undefined || found.length === rows) continue",
    "if (rows === undefined || found.length >= 0) continue"
  ]),
  mistake("answered-before-the-commit", "waiting callers get their results after the commit", [
    "books/ledger/write/WriterThread.ts",
    "end()\n    return step.value",
    'try { end() } catch { if (db.inTransaction) prepare("ROLLBACK").run() }\n    return step.value'
  ]),
  mistake(
    "no-fsync",
    "a commit is on disk when it is acknowledged",
    ["books/ledger/write/WriterThread.ts", 'db.pragma("synchronous = FULL")', 'db.pragma("synchronous = NORMAL")'],
    [
      "books/ledger/write/WriterThread.ts",
      'if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite did not take synchronous = FULL")',
      ""
    ]
  ),
  mistake("failed-commits-are-none", "a commit during a disk failure may be complete", [
    "books/ledger/write/WriterThread.ts",
    "const maybe_written = error instanceof CommitFailed",
    "const maybe_written = false"
  ]),
  mistake("thread-stays-dead", "an ended writer's thread is restarted", [
    "books/ledger/write/QueuedWriter.ts",
    "restart = setTimeout(begin, restartPause)",
    ""
  ]),
  mistake("nobody-is-told", "callers that wait for an ended thread are notified", [
    "books/ledger/write/QueuedWriter.ts",
    "link = undefined\n    tellAll(new BooksUnavailable({ maybe_written: true }))",
    "link = undefined"
  ]),
  mistake("surely-not-written", "the batch of an ended thread may be written", [
    "books/ledger/write/QueuedWriter.ts",
    "link = undefined\n    tellAll(new BooksUnavailable({ maybe_written: true }))",
    "link = undefined\n    tellAll(new BooksUnavailable())"
  ]),
  mistake("loop-dies", "a loop survives a failed iteration", [
    "kernel/Loop.ts",
    "if (Cause.isInterruptedOnly(exit.cause)) return yield* Effect.failCause(exit.cause as Cause.Cause<never>)",
    "return yield* Effect.failCause(exit.cause as Cause.Cause<never>)"
  ]),
  // ---- the gate ----
  mistake("settlement-is-given-up", "a settlement that cannot be written is retried", [
    "books/gate/Gate.ts",
    'if (cause._tag === "Fail" && cause.error._tag === "BooksUnavailable")\n      return Effect.map(this.books.writeLater(this, ending), use)',
    ""
  ]),
  mistake("late-reservation-stays", "a reservation that is written after its call was refused is released", [
    "books/gate/Gate.ts",
    "if (refusal.maybe_written) {",
    "if (refusal.maybe_written && !refusal.maybe_written) {"
  ]),
  mistake("ended-runs-keep-theirs", "reservations of an earlier process are released", [
    "books/gate/Gate.ts",
    "const left = (yield* Effect.forEach(others, leftBy)).flat()",
    "const left = (yield* Effect.forEach([], leftBy)).flat()"
  ]),
  mistake("who-leaves-does-not-pay", "a call cannot be interrupted between its admission and its end", [
    "books/gate/Gate.ts",
    "Effect.uninterruptible(\n      Effect.suspend(() =>\n        claim.request_id",
    "Effect.interruptible(\n      Effect.suspend(() =>\n        claim.request_id"
  ]),
  mistake("failed-calls-stay-open", "a failed call is also ended", [
    "books/gate/Gate.ts",
    "return this.ending === undefined ? Effect.ignore(this.settle(failed(cause))) : Effect.void",
    "return Effect.void"
  ]),
  mistake("nobody-reads-on", "a call is still read after its client disconnects", [
    "kernel/ReadOn.ts",
    "if (this.stop === undefined || reads_on === false) {",
    "if (this.stop !== undefined || reads_on === false) {"
  ]),
  mistake("late-answers-are-free", "after a disconnect, a non-streaming response is read to its end", [
    "kernel/ReadOn.ts",
    "reads_on === true ? after(readOnFor, stop) : reads_on.until(stop)",
    "after(readOnFor, stop)"
  ]),
  // ---- models ----
  mistake("absurd-figures", "reported usage is capped at the most that the request can cause", [
    "calls/prompts/Tokens.ts",
    "Math.min(completion ?? counted().completion_tokens, most.completion_tokens)",
    "completion ?? counted().completion_tokens"
  ]),
  mistake(
    "no-figures-no-charge",
    "a response without usage figures is counted",
    [
      "calls/prompts/Tokens.ts",
      "Math.min(counted().prompt_tokens, most.prompt_tokens)",
      "Math.min(0, most.prompt_tokens)"
    ],
    [
      "calls/prompts/Tokens.ts",
      "Math.min(completion ?? counted().completion_tokens, most.completion_tokens)",
      "Math.min(completion ?? 0, most.completion_tokens)"
    ]
  ),
  mistake("refusals-are-charged", "a vendor's refusal is not treated as a response", [
    "calls/engine/Engine.ts",
    "if (isRefusal(answer)) return yield* refused(upstream.name, answer, request_id)\n  if (answer.outline",
    "if (answer.outline"
  ]),
  mistake("broken-streams-are-whole", "a stream broken off by its vendor is not complete", [
    "calls/prompts/EventRelay.ts",
    "if (!reader.isFinished()) return incompleteEnds[stop]",
    "reader.isFinished()"
  ]),
  mistake("long-events-are-not-read", "an event too long to buffer is still read for its usage and its end", [
    "calls/prompts/EventRelay.ts",
    "if (this.reader.skipped(skipped, stream)) return true",
    'if (this.reader.skipped({ ...skipped, text: "data: {}\\n\\n" }, stream)) return true'
  ]),
  // ---- idempotency keys ----
  mistake("key-without-its-call", "an Idempotency-Key is tied to its call", [
    "http/idempotency/Keys.ts",
    "SET call = ${call} WHERE ${mine}",
    "SET call = NULL WHERE ${mine}"
  ]),
  mistake("answers-are-not-kept", "the response for a key is stored", [
    "http/idempotency/Idempotency.ts",
    "if (Exit.isSuccess(exit) && toStore) {",
    "if (Exit.isSuccess(exit) && !toStore) {"
  ]),
  // ---- payments ----
  mistake(
    "paid-twice",
    "a payment is credited once",
    ["money/payments/Booking.ts", "if (known.payment !== undefined || amount <= 0n) {", "if (amount <= 0n) {"],
    [
      "money/payments/Facts.ts",
      "VALUES (${id}, ${tenant_id}, ${kind}, ${amount}, ${due}, ${due}, ${created_at}) ON CONFLICT DO NOTHING RETURNING id`,\n      1",
      "VALUES (${id}, ${tenant_id}, ${kind}, ${amount}, ${due}, ${due}, ${created_at}) ON CONFLICT DO NOTHING RETURNING id`"
    ]
  ),
  mistake("refund-before-its-payment", "a refund that arrives before its payment is taken back with the payment", [
    "money/payments/Booking.ts",
    "const due = dueOf(amount, known.movements)",
    "const due = 0n"
  ]),
  mistake("debts-stay", "an owed amount is taken from credit that becomes available or arrives", [
    "books/ledger/rules/Books.ts",
    "const taken = smaller(amount, freeOf(account))",
    "const taken = smaller(amount, 0n)"
  ]),
  mistake("failed-refund-before-its-refund", "a failed refund stays failed, in any order of the events", [
    "money/payments/Movement.ts",
    "const returned = before.returned || one.returned",
    "const returned = one.returned"
  ]),
  mistake("totals-count-twice", "a refund and the total that includes it count once", [
    "money/payments/Movement.ts",
    "(single > total ? single : total)",
    "(single + total)"
  ]),
  mistake("events-that-are-not-written", "an event that is not stored is not acknowledged", [
    "money/payments/Booking.ts",
    "AccountMissing: Effect.die,\n      BalanceTooLarge: Effect.die\n    })\n  )\n  // A concurrent",
    "BooksUnavailable: () => Effect.succeed(true),\n      AccountMissing: Effect.die,\n      BalanceTooLarge: Effect.die\n    })\n  )\n  // A concurrent"
  ]),
  // ---- auto-reload ----
  mistake("ids-of-others", "the ids of stored responses belong to the account that received them", [
    "calls/responses/Responses.ts",
    "if (unknown !== undefined) return yield* new Kept.NotHandedOut({ field: unknown.field })",
    ""
  ]),
  mistake("jobs-of-other-keys", "a key reaches only the jobs that it ordered", [
    "calls/media/Rows.ts",
    "const held = holder === signedIn ? sql`true` : sql`holder = ${holder}`",
    "const held = sql`true`"
  ]),
  mistake("no-cooldown", "a tenant is charged at most once in ten minutes", [
    "money/autoreload/Turns.ts",
    "&& !isCooling(settings, now)) {",
    ") {"
  ]),
  mistake("falls-are-forgotten", "a balance that falls during the cooldown is reloaded after it", [
    "money/autoreload/Turns.ts",
    "else due.set(one, active && settings.attempt === null ? cooledAt(settings) : now + checkEvery)",
    "else due.delete(one)"
  ]),
  mistake("attempts-are-forgotten", "an attempt of an earlier process is pursued", [
    "money/autoreload/Attempts.ts",
    "open.set(attempt.id, { attempt, asked: true, tries: 0, at })",
    ""
  ]),
  // ---- media, mail, people ----
  mistake("jobs-are-forgotten", "the jobs of an earlier process are polled", [
    "calls/media/Jobs.ts",
    "for (const { id } of yield* parts.rows.running) Poll.watchOf(parts, id, now)",
    ""
  ]),
  mistake("half-submitted-jobs", "an interrupted submission is ended", [
    "calls/media/Jobs.ts",
    "const orphans = yield* Effect.filter(yield* rows.submitting, ({ call }) => gate.isOrphan(call))",
    "const orphans = yield* Effect.filter((yield* rows.submitting).slice(0, 0), ({ call }) => gate.isOrphan(call))"
  ]),
  mistake("lost-jobs-stay", "a job that its vendor did not accept ends with its call", [
    "calls/media/Jobs.ts",
    "return Effect.zipRight(Effect.ignore(end), Effect.failCause(cause))",
    "return Effect.zipRight(Effect.void, Effect.failCause(cause))"
  ]),
  mistake(
    "letters-wait",
    "the outbox is woken by an email, and also polls",
    ["money/transfers/Sending.ts", "Effect.zipRight(outbox.wake, waker.wake)", "waker.wake"],
    ["people/mail/Outbox.ts", "if (next?.due_at == null) return pauseMax", "if (next?.due_at == null) return undefined"]
  ),
  mistake("letters-that-were-taken", "an email claimed by a commit without a reply is delivered", [
    "people/mail/Delivery.ts",
    "if (maybe_written && isAlone) state = isClaimedHere",
    ""
  ]),
  mistake("letters-of-late-commits", "an email whose commit was acknowledged too late is still found", [
    "people/mail/Outbox.ts",
    "if (next?.due_at == null) return pauseMax",
    "if (next?.due_at == null) return undefined"
  ]),
  mistake(
    "interrupted-letters",
    "emails in delivery when the process ended are abandoned",
    [
      "people/mail/Outbox.ts",
      "yield* Delivery.endInterrupted(dependencies, Number.MAX_SAFE_INTEGER)",
      "yield* Effect.void"
    ],
    ["people/mail/Outbox.ts", "yield* Delivery.endInterrupted(dependencies, now - attemptMax)", "yield* Effect.void"],
    // Keep the outbox from waking up for these emails too.
    [
      "people/mail/Outbox.ts",
      "AS due_at\n    FROM tollgate_mail_outbox WHERE status IN ('waiting', 'sending')",
      "AS due_at\n    FROM tollgate_mail_outbox WHERE status = 'waiting'"
    ]
  ),
  mistake(
    "welcomed-twice",
    "concurrent sign-ins create one account",
    [
      "people/tenants/Welcome.ts",
      "VALUES (${provider}, ${subject}, ${account}, ${email}) ON CONFLICT DO NOTHING RETURNING account_id`,\n    1",
      "VALUES (${provider}, ${subject}, ${account}, ${email}) ON CONFLICT DO NOTHING RETURNING account_id`"
    ],
    [
      "people/tenants/Welcome.ts",
      "${granted_at}, ${now}, ${now}) ON CONFLICT DO NOTHING RETURNING id`,\n        1",
      "${granted_at}, ${now}, ${now}) ON CONFLICT DO NOTHING RETURNING id`"
    ]
  ),
  mistake(
    "transfer-key",
    "one Idempotency-Key creates one transfer",
    [
      "money/transfers/Sending.ts",
      "const made = yield* findReplay(parts, account, key, request_hash)\n    if (made !== undefined) return made",
      ""
    ],
    [
      "money/transfers/Sending.ts",
      "idempotency_key,\n    request_hash,\n    created_at",
      "idempotency_key: token,\n    request_hash,\n    created_at"
    ]
  )
]
