/**
 * Form fields with a label, help and an error text. `FormOf` shows an error at the field that the service names (`details.field`), or above the
 * buttons if there is no such field.
 */
import { ChevronDown } from "lucide-react"
import { FieldError } from "react-aria-components/FieldError"
import { Form } from "react-aria-components/Form"
import { Input } from "react-aria-components/Input"
import { Label } from "react-aria-components/Label"
import { Text } from "react-aria-components/Text"
import { TextArea } from "react-aria-components/TextArea"
import { TextField as AriaTextField } from "react-aria-components/TextField"
import { createContext, useContext, useLayoutEffect, useId, useRef, useState } from "react"
import type { ReactNode } from "react"
import { Refusal } from "../app/Refusal.ts"
import { advice } from "./States.tsx"

interface FieldProps {
  /** The field's name in the request body. Errors that name it are shown at this field. */
  readonly name: string
  readonly label: string
  readonly help?: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly isRequired?: boolean
  readonly autoFocus?: boolean
  readonly placeholder?: string
  readonly maxLength?: number
  readonly autoComplete?: string
}

interface TextFieldProps extends FieldProps {
  readonly type?: "text" | "email" | "date" | "search"
  readonly inputMode?: "decimal" | "numeric" | "text"
  readonly pattern?: string
  /** Text before and after the input, such as a currency or a unit. */
  readonly before?: string
  readonly behind?: string
  readonly lines?: number
}

export const TextField = ({
  before,
  behind,
  help,
  inputMode,
  label,
  lines,
  pattern,
  placeholder = "",
  ...props
}: TextFieldProps) => (
  <AriaTextField
    {...props}
    className="field"
    {...(inputMode !== undefined && { inputMode })}
    {...(pattern !== undefined && { pattern })}
    {...(props.autoComplete === undefined && { autoComplete: "off" })}
  >
    <Label className="field-label">{label}</Label>
    <div className="field-box">
      {before === undefined ? null : <span className="field-affix">{before}</span>}
      {lines === undefined ? (
        <Input className="field-input" placeholder={placeholder} />
      ) : (
        <TextArea className="field-input field-area" rows={lines} placeholder={placeholder} />
      )}
      {behind === undefined ? null : <span className="field-affix">{behind}</span>}
    </div>
    {help === undefined ? null : (
      <Text slot="description" className="field-help">
        {help}
      </Text>
    )}
    <FieldError className="field-error" />
  </AriaTextField>
)

/** Renders a field for an amount in USD. Its value is a decimal string. */
export const MoneyField = (props: FieldProps) => (
  <TextField {...props} inputMode="decimal" pattern="[0-9]*\.?[0-9]{0,9}" before="$" behind="USD" />
)

interface SelectFieldProps extends Omit<FieldProps, "placeholder" | "maxLength"> {
  readonly options: ReadonlyArray<readonly [value: string, label: string]>
}

/** The form's error: the invalid field and the reason. */
const Problem = createContext<{ readonly field: string; readonly text: string } | undefined>(undefined)

/** Renders a native select, which works best on phones. */
export const SelectField = ({
  autoFocus,
  help,
  isRequired,
  label,
  name,
  onChange,
  options,
  value
}: SelectFieldProps) => {
  const id = useId()
  const problem = useContext(Problem)
  const text = problem?.field === name ? problem.text : undefined
  const described = [...(help === undefined ? [] : [`${id}-help`]), ...(text === undefined ? [] : [`${id}-problem`])]
  return (
    <div className="field" data-invalid={text !== undefined || undefined}>
      <label className="field-label" htmlFor={id}>
        {label}
      </label>
      <div className="field-box">
        <select
          id={id}
          name={name}
          className="field-input field-select"
          value={value}
          required={isRequired}
          autoFocus={autoFocus}
          aria-invalid={text !== undefined || undefined}
          {...(described.length > 0 && { "aria-describedby": described.join(" ") })}
          onChange={({ target }) => onChange(target.value)}
        >
          {options.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
        <ChevronDown className="field-arrow" size={15} strokeWidth={1.75} aria-hidden />
      </div>
      {help === undefined ? null : (
        <span id={`${id}-help`} className="field-help">
          {help}
        </span>
      )}
      {text === undefined ? null : (
        <span id={`${id}-problem`} className="field-error" role="alert">
          {text}
        </span>
      )}
    </div>
  )
}

interface CheckFieldProps {
  readonly label: ReactNode
  readonly help?: string
  readonly value: boolean
  readonly onChange: (value: boolean) => void
}

export const CheckField = ({ help, label, onChange, value }: CheckFieldProps) => (
  <label className="field-check">
    <input type="checkbox" checked={value} onChange={({ target }) => onChange(target.checked)} />
    <span>
      {label}
      {help === undefined ? null : <span className="field-help">{help}</span>}
    </span>
  </label>
)

interface FormOfProps {
  readonly onSubmit: () => void
  readonly error: unknown
  readonly children: ReactNode
  readonly actions: ReactNode
}

/** Returns whether the form has an input with this name, which then shows the error. */
const hasInput = (form: HTMLFormElement | null, field: string): boolean => {
  const found = form?.elements.namedItem(field)
  return found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement || found instanceof HTMLSelectElement
}

export const FormOf = ({ actions, children, error, onSubmit }: FormOfProps) => {
  const form = useRef<HTMLFormElement>(null)
  const [isPlaced, setPlaced] = useState(false)
  // Hide the error when an input changes, because a form with an invalid field cannot be submitted.
  const [dismissedError, setDismissedError] = useState<unknown>()
  const isDismissed = error === dismissedError
  const field = error instanceof Refusal && !isDismissed ? error.field : undefined
  const rule = error instanceof Refusal && typeof error.details["rule"] === "string" ? error.details["rule"] : undefined
  // Run before paint so that the error never appears in both places.
  useLayoutEffect(() => setPlaced(field !== undefined && hasInput(form.current, field)), [field])
  const problem = field === undefined ? undefined : { field, text: rule ?? advice(error) }
  return (
    <Form
      ref={form}
      validationErrors={problem === undefined ? {} : { [problem.field]: problem.text }}
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
    >
      <div className="form" onChange={() => setDismissedError(error)}>
        <Problem.Provider value={problem}>{children}</Problem.Provider>
        {error === null || error === undefined || isDismissed || isPlaced ? null : (
          <p role="alert" className="field-error">
            {advice(error)}
          </p>
        )}
        {actions}
      </div>
    </Form>
  )
}
