/** A chat with a model, its settings and its cost. */
import { useEffect, useRef, useState, useSyncExternalStore } from "react"
import type { KeyboardEvent } from "react"
import { MessageSquareText, Send, Square, SquarePen } from "lucide-react"
import { count } from "../../moments.ts"
import { exact, nano } from "../../money.ts"
import { personSession } from "../../app/PersonSession.ts"
import { Button } from "../../parts/Button.tsx"
import { SelectField, TextField } from "../../parts/Fields.tsx"
import { Folded } from "../../parts/Folded.tsx"
import { Money } from "../../parts/Money.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import type { ChatBody } from "./chatCall.ts"
import { conversationOf, isRunning, messagesOf } from "./conversation.ts"
import type { Conversation, Exchange } from "./conversation.ts"
import { ExchangeOf } from "./ExchangeOf.tsx"
import { contextText, priceText, useChatModels } from "./models.ts"
import type { ChatModel } from "./models.ts"
import { Program } from "./Program.tsx"
import { chatCode } from "./programs.ts"

interface Settings {
  readonly model: string
  readonly system: string
  readonly maxTokens: string
  readonly temperature: string
}

const bodyOf = (
  { maxTokens, model, system, temperature }: Settings,
  exchanges: ReadonlyArray<Exchange>,
  message: string
): ChatBody => ({
  model,
  messages: [
    ...(system.trim() === "" ? [] : [{ role: "system" as const, content: system }]),
    ...messagesOf(exchanges),
    { role: "user", content: message }
  ],
  ...(maxTokens.trim() !== "" && { max_tokens: Number(maxTokens) }),
  ...(temperature.trim() !== "" && { temperature: Number(temperature) })
})

interface SettingsProps {
  readonly of: Settings
  readonly models: ReadonlyArray<ChatModel>
  readonly onChange: (settings: Settings) => void
}

const SettingsForm = ({ models, of, onChange }: SettingsProps) => {
  const field = <K extends keyof Settings>(name: K) => ({
    value: of[name],
    onChange: (value: string) => onChange({ ...of, [name]: value })
  })
  const model = models.find(({ id }) => id === of.model)
  const set = [of.system, of.maxTokens, of.temperature].filter((text) => text.trim() !== "").length
  return (
    <div className="form playground-settings">
      <SelectField
        name="model"
        label={playgroundTexts.model}
        options={models.map(({ id, name }) => [id, name.toLowerCase() === id.toLowerCase() ? name : `${name} (${id})`])}
        {...(model !== undefined && { help: `${priceText(model)} · ${contextText(model)}` })}
        {...field("model")}
      />
      <Folded title={set === 0 ? playgroundTexts.settings : playgroundTexts.settingsSet(count(set))}>
        <TextField
          name="system"
          label={playgroundTexts.system}
          help={playgroundTexts.systemHelp}
          lines={3}
          {...field("system")}
        />
        <div className="playground-pair">
          <TextField
            name="max_tokens"
            label={playgroundTexts.maxTokens}
            help={playgroundTexts.maxTokensHelp}
            placeholder={playgroundTexts.asModel}
            inputMode="numeric"
            {...field("maxTokens")}
          />
          <TextField
            name="temperature"
            label={playgroundTexts.temperature}
            help={playgroundTexts.temperatureHelp}
            placeholder={playgroundTexts.asModel}
            inputMode="decimal"
            {...field("temperature")}
          />
        </div>
      </Folded>
    </div>
  )
}

/** Shows the total cost of all responses. Screen readers announce each response when it ends. */
const Sum = ({ of }: { readonly of: ReadonlyArray<Exchange> }) => {
  const charged = of.flatMap(({ charged }) => (charged === undefined || charged === "late" ? [] : [nano(charged)]))
  const last = of.at(-1)
  const announced =
    last === undefined || last.state === "failed"
      ? ""
      : isRunning(last)
        ? playgroundTexts.answering
        : last.charged === undefined || last.charged === "late"
          ? ""
          : playgroundTexts.answered(last.answer, exact(last.charged))
  return (
    <p className="playground-sum">
      {charged.length === 0 ? (
        <span className="quiet">{playgroundTexts.memory}</span>
      ) : (
        <>
          <span className="quiet">{playgroundTexts.sum}</span>{" "}
          <Money of={charged.reduce((sum, one) => sum + one, 0n)} as="exact" focusable />
        </>
      )}
      <span role="status" className="sr-only">
        {announced}
      </span>
    </p>
  )
}

interface ComposerProps {
  readonly isBusy: boolean
  readonly onSend: (message: string) => void
  readonly onStop: () => void
}

const Composer = ({ isBusy, onSend, onStop }: ComposerProps) => {
  const [message, setMessage] = useState("")
  const send = (): void => {
    if (isBusy || message.trim() === "") return
    onSend(message)
    setMessage("")
  }
  const keys = ({ ctrlKey, key, metaKey }: KeyboardEvent): void => {
    if (key === "Enter" && (ctrlKey || metaKey)) send()
  }
  return (
    <form
      className="playground-composer"
      onKeyDown={keys}
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      <TextField
        name="message"
        label={playgroundTexts.message}
        placeholder={playgroundTexts.messagePlaceholder}
        lines={3}
        value={message}
        onChange={setMessage}
      />
      <div className="row between">
        <span className="small quiet playground-hint">{playgroundTexts.hint}</span>
        <span className="row push">
          {isBusy ? (
            <Button icon={Square} onPress={onStop}>
              {playgroundTexts.stop}
            </Button>
          ) : (
            <Button type="submit" kind="primary" icon={Send} isDisabled={message.trim() === ""}>
              {playgroundTexts.send}
            </Button>
          )}
        </span>
      </div>
    </form>
  )
}

/** Makes Escape stop the response, regardless of focus. */
const useEscape = (conversation: Conversation, isBusy: boolean): void =>
  useEffect(() => {
    if (!isBusy) return
    const stop = ({ key }: globalThis.KeyboardEvent): void => {
      if (key === "Escape") conversation.stop()
    }
    addEventListener("keydown", stop)
    return () => removeEventListener("keydown", stop)
  }, [conversation, isBusy])

const example = { role: "user", content: "Why is the sky blue?" } as const

interface ChatProps {
  readonly onExplain: (usageId: string) => void
}

const ChatWith = ({ models, onExplain }: ChatProps & { readonly models: ReadonlyArray<ChatModel> }) => {
  const { state } = personSession
  const conversation = conversationOf(state.kind === "open" ? `${state.grant.account_id} ${state.grant.tenant_id}` : "")
  const exchanges = useSyncExternalStore(conversation.subscribe, () => conversation.exchanges)
  const last = exchanges.at(-1)
  const isBusy = last !== undefined && isRunning(last)
  const [settings, setSettings] = useState<Settings>(() => ({
    model: last?.body.model ?? models[0]!.id,
    system: last?.body.messages.find(({ role }) => role === "system")?.content ?? "",
    maxTokens: String(last?.body.max_tokens ?? ""),
    temperature: String(last?.body.temperature ?? "")
  }))
  const log = useRef<HTMLOListElement>(null)
  useEffect(() => {
    const list = log.current
    if (list !== null) list.scrollTop = list.scrollHeight
  }, [exchanges])
  useEscape(conversation, isBusy)
  const send = (message: string): void => void conversation.send(bodyOf(settings, exchanges, message))
  const sample = last?.body ?? { ...bodyOf(settings, [], example.content) }
  return (
    <>
      <div className="playground-columns">
        <section className="playground-conversation" aria-label={playgroundTexts.conversation}>
          {exchanges.length === 0 ? (
            <Empty icon={MessageSquareText} title={playgroundTexts.emptyTitle}>
              {playgroundTexts.emptyText}
            </Empty>
          ) : (
            <ol className="playground-log" ref={log} tabIndex={0} aria-label={playgroundTexts.conversation}>
              {exchanges.map((one) => (
                <ExchangeOf
                  key={one.id}
                  of={one}
                  model={models.find(({ id }) => id === one.body.model)}
                  onExplain={onExplain}
                  again={one === last && !isBusy ? () => void conversation.send(one.body) : undefined}
                />
              ))}
            </ol>
          )}
          <Composer isBusy={isBusy} onSend={send} onStop={conversation.stop} />
          <div className="row between wrap">
            <Sum of={exchanges} />
            {exchanges.length === 0 ? null : (
              <Button kind="ghost" icon={SquarePen} onPress={conversation.clear}>
                {playgroundTexts.clear}
              </Button>
            )}
          </div>
        </section>
        <SettingsForm of={settings} models={models} onChange={setSettings} />
      </div>
      <Program of={chatCode(sample)} />
    </>
  )
}

export const Chat = ({ onExplain }: ChatProps) => {
  const models = useChatModels()
  return (
    <Answer of={models} lines={8}>
      {(data) =>
        data.length === 0 ? (
          <Empty icon={MessageSquareText} title={playgroundTexts.noModels}>
            {playgroundTexts.noModelsText}
          </Empty>
        ) : (
          <ChatWith models={data} onExplain={onExplain} />
        )
      }
    </Answer>
  )
}
