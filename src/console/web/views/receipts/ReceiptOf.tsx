/** Shows whether a receipt proves what the page shows. It fetches and verifies the receipt when it is rendered. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { CircleAlert, Clock, ShieldCheck, TriangleAlert } from "lucide-react"
import type { LucideIcon } from "lucide-react"
import { useEffect, useRef } from "react"
import type { ReactNode } from "react"
import { tenantId } from "../../app/Client.ts"
import { count, day, time } from "../../moments.ts"
import { Button } from "../../parts/Button.tsx"
import { Code } from "../../parts/Code.tsx"
import { Copy } from "../../parts/Copy.tsx"
import { Facts } from "../../parts/Page.tsx"
import { Failed, Loading } from "../../parts/States.tsx"
import { receiptTexts as texts } from "../../texts/receipts.ts"
import { check } from "./checking.ts"
import type { Checked, Signatures, Subject } from "./checking.ts"
import { trustToo } from "./trust.ts"
import type { Trust } from "./trust.ts"

type Tone = "good" | "warn" | "bad" | "plain"

const icons: Readonly<Record<Tone, LucideIcon>> = {
  good: ShieldCheck,
  warn: TriangleAlert,
  bad: CircleAlert,
  plain: Clock
}

interface VerdictProps {
  readonly tone: Tone
  readonly title: string
  readonly children: ReactNode
}

const Verdict = ({ children, title, tone }: VerdictProps) => {
  const Icon = icons[tone]
  return (
    <div className="receipt-verdict" data-tone={tone} {...((tone === "bad" || tone === "warn") && { role: "alert" })}>
      <Icon size={18} strokeWidth={1.75} aria-hidden />
      <div>
        <p className="states-title">{title}</p>
        {children}
      </div>
    </div>
  )
}

const Cosignatures = ({ of: { cosigned, unknown } }: { readonly of: Signatures }) => (
  <>
    {cosigned.map(({ at, name }) => (
      <p key={name}>{texts.cosigned(name, at === undefined ? undefined : time(at))}</p>
    ))}
    {unknown.length === 0 ? null : <p className="quiet">{texts.unknown(unknown.join(", "))}</p>}
  </>
)

/** Offers the receipt's text, and the command that checks it elsewhere. */
const Keep = ({ receipt, trust }: { readonly receipt: object; readonly trust: Trust }) => (
  <>
    <div className="row">
      <Copy text={JSON.stringify(receipt, null, 2)} label={texts.copy} kind="plain" />
    </div>
    <p className="quiet small">{texts.keep}</p>
    <Code of={`tollgate receipt verify --key '${trust.keys[0] ?? ""}' receipt.json`} />
  </>
)

const KeyChanged = ({ of: { changed, since } }: { readonly of: Trust }) => {
  const queries = useQueryClient()
  const trust = (): void => {
    trustToo(changed, new Date().toISOString())
    void queries.invalidateQueries({ queryKey: ["receipt"] })
  }
  return (
    <Verdict tone="warn" title={texts.changed}>
      <p>{texts.changedText(day(since))}</p>
      <code className="receipt-keys">{changed.join(" ")}</code>
      <Button onPress={trust}>{texts.trust}</Button>
    </Verdict>
  )
}

/** A fact of the call. It is empty if the receipt does not state it. */
const stated = (name: string, value: string): ReadonlyArray<readonly [name: string, value: ReactNode]> =>
  value === "" ? [] : [[name, <code key={name}>{value}</code>]]

const Proven = ({ of }: { readonly of: Extract<Checked, { kind: "verified" }> }) => {
  const { entry, index, origin, root, size } = of.found
  return (
    <>
      <Verdict tone="good" title={texts.inLog[entry.source === "call" ? "charge" : "entry"]}>
        <p>{texts.checkpoint(count(size), time(of.fetchedAt))}</p>
        <Cosignatures of={of.signatures} />
      </Verdict>
      <Facts
        of={[
          [texts.log, origin],
          [texts.entry, texts.entryOf(count(entry.number), entry.account)],
          [texts.leaf, count(index)],
          ...stated(texts.vendor, entry.vendor_requests),
          ...stated(texts.request, entry.request_hash),
          ...stated(texts.answer, entry.answer_hash),
          [texts.root, <code key="root">{root}</code>]
        ]}
      />
    </>
  )
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const Answered = ({ of }: { readonly of: Checked }) => {
  switch (of.kind) {
    case "pending":
      return (
        <Verdict tone="plain" title={texts.pending}>
          <p>{texts.pendingText}</p>
        </Verdict>
      )
    case "none":
      return (
        <Verdict tone="plain" title={texts.none}>
          <p>{of.why}</p>
        </Verdict>
      )
    case "unsupported":
      return (
        <>
          <Verdict tone="warn" title={texts.unsupported}>
            <p>{of.why}</p>
          </Verdict>
          <Code of="tollgate receipt verify --key KEY receipt.json" />
        </>
      )
    case "invalid":
      return (
        <>
          <Verdict tone="bad" title={texts.invalid}>
            <p>{sentence(of.why)}</p>
            <p>{texts.invalidText}</p>
          </Verdict>
          <Keep receipt={of.receipt} trust={of.trust} />
        </>
      )
    case "verified":
      return (
        <>
          <Proven of={of} />
          <Keep receipt={of.receipt} trust={of.trust} />
        </>
      )
  }
}

const hasTrust = (of: Checked): of is Extract<Checked, { kind: "verified" | "invalid" }> =>
  of.kind === "verified" || of.kind === "invalid"

const pendingMillis = 2000

const useChecked = (of: Subject) =>
  useQuery({
    queryKey: ["receipt", tenantId(), of.of],
    queryFn: () => check(of),
    // A proof stays valid. Another view, or a key that the user trusts, verifies again.
    staleTime: Infinity,
    gcTime: 0,
    refetchInterval: ({ state }) => (state.data?.kind === "pending" ? pendingMillis : false)
  })

const Result = ({ of }: { readonly of: ReturnType<typeof useChecked> }) => {
  if (of.isError) {
    return (
      <Failed title={texts.unavailable} error={of.error} isRetrying={of.isFetching} retry={() => void of.refetch()} />
    )
  }
  if (of.data === undefined) return <Loading lines={3} />
  return (
    <>
      {hasTrust(of.data) && of.data.trust.changed.length > 0 ? <KeyChanged of={of.data.trust} /> : null}
      <Answered of={of.data} />
    </>
  )
}

export const ReceiptOf = ({ of }: { readonly of: Subject }) => {
  const checked = useChecked(of)
  const box = useRef<HTMLDivElement>(null)
  const kind = checked.isError ? "error" : checked.data?.kind
  // The result is below the button, possibly below the end of the dialog.
  useEffect(() => {
    if (kind !== undefined) box.current?.scrollIntoView({ block: "nearest" })
  }, [kind])
  return (
    <div ref={box} className="receipt" aria-live="polite">
      <Result of={checked} />
    </div>
  )
}
