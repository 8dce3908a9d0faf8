/** Generates images and videos: the form, the quote and the gallery. */
import { Clapperboard, Sparkles } from "lucide-react"
import { useState } from "react"
import { Refusal } from "../../app/Refusal.ts"
import { exact } from "../../money.ts"
import { count } from "../../moments.ts"
import { Button } from "../../parts/Button.tsx"
import { CheckField, FormOf, SelectField, TextField } from "../../parts/Fields.tsx"
import { Money } from "../../parts/Money.tsx"
import { Section } from "../../parts/Page.tsx"
import { Answer, Empty } from "../../parts/States.tsx"
import { NumberedPages } from "../../parts/Table.tsx"
import { toast } from "../../parts/Toasts.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { perPage, useJobs, useSubmit } from "./asking.ts"
import type { MediaBody } from "./asking.ts"
import { JobCard } from "./JobCard.tsx"
import { quoteOf, useMediaModels } from "./models.ts"
import type { MediaModel } from "./models.ts"
import { Program } from "./Program.tsx"
import { mediaCode } from "./programs.ts"
import { Refused } from "./Refused.tsx"

interface Draft {
  readonly model: string
  readonly prompt: string
  readonly duration: string
  readonly resolution: string
  readonly audio: boolean
  readonly firstFrame: string
  readonly images: string
  readonly size: string
  readonly seed: string
}

const draftOf = (model: string): Draft => ({
  model,
  prompt: "",
  duration: "5",
  resolution: "",
  audio: false,
  firstFrame: "",
  images: "1",
  size: "",
  seed: ""
})

const filled = <K extends string>(name: K, value: string): Partial<Record<K, string>> =>
  value.trim() === "" ? {} : ({ [name]: value.trim() } as Record<K, string>)

const numberField = <K extends string>(name: K, value: string): Partial<Record<K, number>> =>
  value.trim() === "" ? {} : ({ [name]: Number(value) } as Record<K, number>)

/** Builds the request from the nonempty fields for the model's type. The model's defaults apply to all other fields. */
const bodyOf = ({ type }: MediaModel, draft: Draft): MediaBody => ({
  model: draft.model,
  ...filled("prompt", draft.prompt),
  ...(type === "video"
    ? {
        ...numberField("duration", draft.duration),
        ...filled("resolution", draft.resolution),
        ...(draft.audio && { audio: true }),
        ...filled("start_image_url", draft.firstFrame)
      }
    : { ...numberField("num_images", draft.images), ...filled("image_size", draft.size) }),
  ...numberField("seed", draft.seed)
})

const unitsOf = ({ type }: MediaModel, { duration, images }: Draft): number | undefined => {
  const units = Number(type === "video" ? duration : images)
  return Number.isInteger(units) && units > 0 && units < 10_000 ? units : undefined
}

interface FieldsProps {
  readonly model: MediaModel
  readonly draft: Draft
  readonly onChange: (draft: Draft) => void
}

type Typed = { readonly [K in keyof Draft]: Draft[K] extends string ? K : never }[keyof Draft]

const typedIn =
  ({ draft, onChange }: FieldsProps) =>
  (name: Typed) => ({
    value: draft[name],
    onChange: (value: string) => onChange({ ...draft, [name]: value })
  })

const VideoFields = (props: FieldsProps) => {
  const field = typedIn(props)
  return (
    <>
      <div className="playground-pair">
        <TextField
          name="duration"
          label={playgroundTexts.duration}
          placeholder={playgroundTexts.asModel}
          inputMode="numeric"
          {...field("duration")}
        />
        <TextField
          name="resolution"
          label={playgroundTexts.resolution}
          placeholder={playgroundTexts.asModel}
          {...field("resolution")}
        />
      </div>
      <TextField
        name="start_image_url"
        label={playgroundTexts.firstFrame}
        help={playgroundTexts.firstFrameHelp}
        {...field("firstFrame")}
      />
      <CheckField
        label={playgroundTexts.audio}
        help={playgroundTexts.audioHelp}
        value={props.draft.audio}
        onChange={(audio) => props.onChange({ ...props.draft, audio })}
      />
    </>
  )
}

const sizes = Object.entries(playgroundTexts.sizes)

const ImageFields = (props: FieldsProps) => {
  const field = typedIn(props)
  return (
    <div className="playground-pair">
      <TextField name="num_images" label={playgroundTexts.images} inputMode="numeric" {...field("images")} />
      <SelectField
        name="image_size"
        label={playgroundTexts.size}
        options={[["", playgroundTexts.asModel], ...sizes]}
        {...field("size")}
      />
    </div>
  )
}

/** Shows the price before submission, with a note if an option can change the price. */
const Quote = ({ draft, model }: Pick<FieldsProps, "draft" | "model">) => {
  const units = unitsOf(model, draft)
  const isOther = model.type === "video" && (draft.resolution.trim() !== "" || draft.audio)
  return (
    <div className="playground-quote">
      <p className="row between wrap">
        <span>{isOther ? playgroundTexts.quoteFrom : playgroundTexts.quote}</span>
        {units === undefined ? (
          <span className="quiet">{"\u2013"}</span>
        ) : (
          <span>
            <span className="quiet small">
              {count(units)} {"\u00d7"} {exact(model.unit_price_usd)}
            </span>{" "}
            <strong>
              <Money of={quoteOf(model, units)} as="exact" focusable />
            </strong>
          </span>
        )}
      </p>
      <p className="small quiet">{isOther ? playgroundTexts.quoteChanges : playgroundTexts.quoteHelp}</p>
    </div>
  )
}

/** Returns whether a form field shows this error. */
const isOfField = (error: unknown): boolean => error instanceof Refusal && (error.field ?? "") !== ""

const Form = ({ models }: { readonly models: ReadonlyArray<MediaModel> }) => {
  const [draft, setDraft] = useState(() => draftOf((models.find((one) => one.default) ?? models[0]!).id))
  const model = models.find(({ id }) => id === draft.model) ?? models[0]!
  const submit = useSubmit(({ cost_usd }) => toast(playgroundTexts.submitted(exact(cost_usd))))
  const props = { model, draft, onChange: setDraft }
  const field = typedIn(props)
  const body = bodyOf(model, draft)
  const isRefused = submit.error !== null && !isOfField(submit.error)
  return (
    <div className="playground-making">
      <FormOf
        error={isRefused ? null : submit.error}
        onSubmit={() => submit.mutate(body)}
        actions={
          <>
            <Quote draft={draft} model={model} />
            {isRefused ? <Refused error={submit.error} of="media" /> : null}
            <div>
              <Button type="submit" kind="primary" icon={Sparkles} isPending={submit.isPending}>
                {playgroundTexts.make}
              </Button>
            </div>
          </>
        }
      >
        <SelectField
          name="model"
          label={playgroundTexts.model}
          options={models.map(({ display_name, id, type }) => [id, `${display_name} · ${playgroundTexts.kinds[type]}`])}
          help={model.pricing_note}
          {...field("model")}
        />
        <TextField
          name="prompt"
          label={playgroundTexts.prompt}
          help={playgroundTexts.promptHelp}
          lines={3}
          {...field("prompt")}
        />
        {model.type === "video" ? <VideoFields {...props} /> : <ImageFields {...props} />}
        <TextField
          name="seed"
          label={playgroundTexts.seed}
          help={playgroundTexts.seedHelp}
          placeholder={playgroundTexts.asModel}
          inputMode="numeric"
          {...field("seed")}
        />
      </FormOf>
      <Program of={mediaCode({ ...body, ...(body.prompt === undefined && { prompt: "A lighthouse at dusk" }) })} />
    </div>
  )
}

const Gallery = ({ models }: { readonly models: ReadonlyArray<MediaModel> }) => {
  const [page, setPage] = useState(1)
  const jobs = useJobs(page)
  return (
    <Section title={playgroundTexts.gallery} lead={playgroundTexts.galleryLead}>
      <Answer of={jobs} lines={6}>
        {({ records, total_records }) =>
          records.length === 0 ? (
            <Empty icon={Clapperboard} title={playgroundTexts.noJobs}>
              {playgroundTexts.noJobsText}
            </Empty>
          ) : (
            <>
              <ul className="playground-gallery">
                {records.map((job) => (
                  <JobCard
                    key={job.request_id}
                    of={job}
                    name={models.find(({ id }) => id === job.model)?.display_name ?? job.model}
                  />
                ))}
              </ul>
              <NumberedPages page={page} perPage={perPage} shown={records.length} total={total_records} go={setPage} />
            </>
          )
        }
      </Answer>
    </Section>
  )
}

export const Media = () => {
  const models = useMediaModels()
  return (
    <Answer of={models} lines={8}>
      {(data) =>
        data.length === 0 ? (
          <Empty icon={Clapperboard} title={playgroundTexts.noMedia}>
            {playgroundTexts.noModelsText}
          </Empty>
        ) : (
          <div className="playground-columns playground-media">
            <Gallery models={data} />
            <Form models={data} />
          </div>
        )
      }
    </Answer>
  )
}
