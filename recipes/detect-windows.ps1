<#
.SYNOPSIS
Facts of a Windows machine for `fainstall plan --host facts.json`, on this machine or another one.
.DESCRIPTION
Reads only: nothing is installed, changed, sent or imported. Each tool gets ten seconds. What cannot be found out is left out (unknown);
"" means looked for and not there. Works in Windows PowerShell 5.1 and PowerShell 7.
.EXAMPLE
powershell -ExecutionPolicy Bypass -File detect-windows.ps1 -Out facts.json
.PARAMETER Out
The file to write (UTF-8). Without it the facts go to standard output.
.PARAMETER Python
The interpreter of the target environment. Without it: the active venv or conda environment, else the newest Python of the launcher.
#>
[CmdletBinding()]
param([string]$Out = '', [string]$Python = '')

$ErrorActionPreference = 'SilentlyContinue'
$facts = [ordered]@{ schema = 'fainstall.facts/1' }
$origins = [ordered]@{}
$problems = New-Object System.Collections.ArrayList

# One function for each type of a fact. $null is unknown and is left out.
function Keep($name, $value, $origin) {
    if ($null -eq $value) { return }
    $facts[$name] = $value
    if ($origin) { $origins[$name] = [string]$origin }
}
function Text($name, $value, $origin) { if ($null -ne $value) { Keep $name ([string]$value).Trim() $origin } }
function Number($name, $value, $origin) { if ($null -ne $value) { Keep $name ([long]$value) $origin } }
function Flag($name, $value, $origin) { if ($null -ne $value) { Keep $name ([bool]$value) $origin } }
function Problem($id, $tool, $text, $repair) {
    [void]$problems.Add([ordered]@{ id = $id; tool = $tool; text = $text; repair = $repair })
}

# What a program prints, as one text; $null when it is not there, hangs or fails. Arguments must need no quotes.
function Ask($program, $arguments) {
    $start = New-Object System.Diagnostics.ProcessStartInfo
    $start.FileName = $program
    $start.Arguments = $arguments
    $start.UseShellExecute = $false
    $start.CreateNoWindow = $true
    $start.RedirectStandardOutput = $true
    $start.RedirectStandardError = $true
    $start.RedirectStandardInput = $true
    $process = $null
    try { $process = [System.Diagnostics.Process]::Start($start) } catch { return $null }
    if ($null -eq $process) { return $null }
    $process.StandardInput.Close()
    $output = $process.StandardOutput.ReadToEndAsync()
    $complaint = $process.StandardError.ReadToEndAsync()
    if (-not $process.WaitForExit(10000)) {
        try { $process.Kill() } catch { $null = $_ }
        return $null
    }
    if ($process.ExitCode -ne 0) { return $null }
    return ($output.Result + $complaint.Result)
}

# The program's path, $null when it is not there. The stubs of the Microsoft Store are no programs.
function Find($name) {
    foreach ($found in @(Get-Command -Name $name -CommandType Application)) {
        if ($found -and $found.Source -notlike '*\WindowsApps\*') { return $found.Source }
    }
    return $null
}

# First group of a pattern in a text.
function Match($text, $pattern) {
    if ($text -and $text -match $pattern) { return $Matches[1] }
    return $null
}

function FreeMib($path) {
    $root = [System.IO.Path]::GetPathRoot([System.IO.Path]::GetFullPath($path))
    try { return [long]((New-Object System.IO.DriveInfo $root).AvailableFreeSpace / 1mb) } catch { return $null }
}

# ---- the system
$system = Get-CimInstance -ClassName Win32_OperatingSystem
$processor = $env:PROCESSOR_ARCHITEW6432
if (-not $processor) { $processor = $env:PROCESSOR_ARCHITECTURE }
Text 'os' 'windows' 'PowerShell'
if ($processor -eq 'AMD64') { Text 'machine' 'x86_64' 'PROCESSOR_ARCHITECTURE' }
if ($processor -eq 'ARM64') { Text 'machine' 'aarch64' 'PROCESSOR_ARCHITECTURE' }
Text 'distro' 'windows' 'PowerShell'
Text 'distro_version' ([Environment]::OSVersion.Version.ToString(3)) 'OSVersion'
Text 'kernel' ([Environment]::OSVersion.Version.ToString()) 'OSVersion'
$inside = if (Find 'wsl.exe') { 'Windows itself; wsl.exe is here: run fainstall inside WSL for Linux files' } else { 'Windows itself' }
Flag 'wsl' $false $inside
Text 'container' '' 'PowerShell'
Text 'jetson' '' 'PowerShell'
Number 'cores' ([Environment]::ProcessorCount) 'ProcessorCount'
if ($system) {
    Number 'ram_mib' ($system.TotalVisibleMemorySize / 1kb) 'Win32_OperatingSystem'
    Number 'ram_available_mib' ($system.FreePhysicalMemory / 1kb) 'Win32_OperatingSystem'
}
Number 'disk_free_mib' (FreeMib (Get-Location).ProviderPath) 'drive of this folder'
Number 'tmp_free_mib' (FreeMib ([System.IO.Path]::GetTempPath())) 'drive of TEMP'
$long = Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem' -Name LongPathsEnabled
if (-not $long -or $long.LongPathsEnabled -ne 1) {
    Problem 'long_paths_off' 'registry' 'Paths longer than 260 characters are refused: a build of Flash-Attention makes some' `
        'as administrator: New-ItemProperty HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem LongPathsEnabled -Value 1 -PropertyType DWord -Force'
}

# ---- cards: nvidia-smi says what is there; without it the names that Windows has
$gpus = New-Object System.Collections.ArrayList
$smi = Find 'nvidia-smi.exe'
foreach ($place in @("$env:SystemRoot\System32\nvidia-smi.exe", "$env:ProgramFiles\NVIDIA Corporation\NVSMI\nvidia-smi.exe")) {
    if (-not $smi -and (Test-Path -LiteralPath $place)) { $smi = $place }
}
$adapters = @(Get-CimInstance -ClassName Win32_VideoController | Where-Object { $_.Name -match 'NVIDIA|AMD|Radeon' })
$table = $null
if ($smi) {
    $table = Ask $smi '--query-gpu=index,name,memory.total,pci.bus_id,compute_cap --format=csv,noheader,nounits'
    if (-not $table) { $table = Ask $smi '--query-gpu=index,name,memory.total,pci.bus_id --format=csv,noheader,nounits' }
}
foreach ($line in @("$table" -split '\r?\n')) {
    $cells = @($line -split '\s*,\s*')
    if ($cells.Count -lt 4 -or $cells[0] -notmatch '^\d+$') { continue }
    $gpu = [ordered]@{ vendor = 'nvidia'; index = [int]$cells[0]; name = $cells[1] }
    if ($cells.Count -gt 4 -and $cells[4] -match '^(\d+)\.(\d)$') { $gpu.arch = $Matches[1] + $Matches[2] }
    if ($cells[2] -match '^\d+$') { $gpu.memory_mib = [long]$cells[2] }
    $gpu.pci = $cells[3]
    [void]$gpus.Add($gpu)
}
$nvidia = @($adapters | Where-Object { $_.Name -match 'NVIDIA' })
if ($smi -and $gpus.Count -gt 0) {
    Text 'driver' (Match (Ask $smi '--query-gpu=driver_version --format=csv,noheader') '(\d+\.\d+)') 'nvidia-smi'
    Text 'driver_cuda' (Match (Ask $smi '') 'CUDA (?:UMD )?Version:\s*(\d+\.\d+)') 'nvidia-smi'
} elseif ($nvidia.Count -gt 0) {
    Problem 'nvidia_smi_failed' 'nvidia-smi' 'A card of NVIDIA is here and nvidia-smi says nothing of it' 'install the driver of NVIDIA again, then run this again'
    # 32.0.15.7652 of Windows is driver 576.52: the last five digits
    $digits = ($nvidia[0].DriverVersion -replace '\D', '')
    if ($digits.Length -ge 5) {
        $tail = $digits.Substring($digits.Length - 5)
        Text 'driver' ($tail.Substring(0, 3) + '.' + $tail.Substring(3)) 'Win32_VideoController'
    }
} else {
    Text 'driver' '' 'Win32_VideoController'
}
foreach ($adapter in $adapters) {
    $vendor = if ($adapter.Name -match 'NVIDIA') { 'nvidia' } else { 'amd' }
    if ($vendor -eq 'nvidia' -and $facts.Contains('driver_cuda')) { continue }
    [void]$gpus.Add([ordered]@{ vendor = $vendor; index = $gpus.Count; name = [string]$adapter.Name })
}

# ---- toolkits and compilers
$toolkits = New-Object System.Collections.ArrayList
$homes = New-Object System.Collections.ArrayList
foreach ($place in @($env:CUDA_HOME, $env:CUDA_PATH) + @(Get-ChildItem -LiteralPath "$env:ProgramFiles\NVIDIA GPU Computing Toolkit\CUDA" -Directory |
        ForEach-Object { $_.FullName })) {
    if ($place -and -not $homes.Contains($place)) { [void]$homes.Add($place) }
}
foreach ($place in $homes) {
    $release = Match (Ask "$place\bin\nvcc.exe" '--version') 'V(\d+\.\d+\.\d+)'
    if ($release) { [void]$toolkits.Add([ordered]@{ kind = 'cuda'; version = $release; home = [string]$place }) }
}
$first = if ($toolkits.Count -gt 0) { $toolkits[0].home } else { '' }
Text 'cuda_home' $first 'CUDA_HOME, CUDA_PATH, Program Files'
$vswhere = "${env:ProgramFiles(x86)}\Microsoft Visual Studio\Installer\vswhere.exe"
$studio = ''
if (Test-Path -LiteralPath $vswhere) { $studio = ("$(Ask $vswhere '-latest -products * -property installationPath')" -split '\r?\n')[0].Trim() }
$msvc = ''
if ($studio) {
    # tools 14.44.35207 hold compiler 19.44
    $tools = Get-Content -LiteralPath "$studio\VC\Auxiliary\Build\Microsoft.VCToolsVersion.default.txt" -TotalCount 1
    $minor = Match $tools '^14\.(\d+)'
    if ($minor) { $msvc = "19.$minor" }
}
Text 'msvc' $msvc 'vswhere'
foreach ($tool in @('ninja', 'git', 'uv', 'conda')) {
    $version = ''
    $program = Find $tool
    if ($program -and $program -like '*.exe') { $version = Match (Ask $program '--version') '(\d+(?:\.\d+)+)' }
    switch ($tool) {
        'ninja' { Text 'ninja' $version 'ninja --version' }
        'git' { Text 'git' $version 'git --version' }
        'uv' { Text 'uv' $version 'uv --version' }
        'conda' { Text 'conda' $version 'conda --version' }
    }
}

# ---- Python and what is installed: read from files, torch is not imported
$interpreter = $Python
if (-not $interpreter -and $env:VIRTUAL_ENV) { $interpreter = "$env:VIRTUAL_ENV\Scripts\python.exe" }
if (-not $interpreter -and $env:CONDA_PREFIX) { $interpreter = "$env:CONDA_PREFIX\python.exe" }
if (-not $interpreter) {
    $launcher = Find 'py.exe'
    if ($launcher) { $interpreter = Match (Ask $launcher '-3 -c "import sys; print(sys.executable)"') '(\S.*\.exe)' }
}
if (-not $interpreter) { $interpreter = Find 'python.exe' }
$question = @'
import importlib.metadata as m, os, re, sys, sysconfig
def of(name):
    try:
        return m.version(name)
    except Exception:
        return ''
def line(name, value):
    print(name + '=' + str(value))
line('version', '.'.join(map(str, sys.version_info[:3])))
line('abi', 'cp%d%d%s' % (sys.version_info[0], sys.version_info[1], 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''))
line('headers', int(os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h'))))
for name in ('pip', 'torch', 'flash-attn', 'flash_attn_3', 'flash-attn-4', 'triton', 'triton-windows'):
    line(name, of(name))
try:
    files = [p for p in m.files('torch') or [] if str(p).replace(os.sep, '/') == 'torch/version.py']
    text = files[0].read_text() if files else ''
except Exception:
    text = ''
for name in ('cuda', 'hip'):
    found = re.search(r'^' + name + r'(?::[^=]*)?\s*=\s*[\'"]([^\'"]*)', text, re.M)
    line('torch.' + name, found.group(1) if found else '')
'@
$answers = @{}
if ($interpreter -and (Test-Path -LiteralPath $interpreter)) {
    $script = [System.IO.Path]::GetTempFileName()
    [System.IO.File]::WriteAllText($script, $question)
    foreach ($line in @("$(Ask $interpreter ('-I "' + $script + '"'))" -split '\r?\n')) {
        $at = $line.IndexOf('=')
        if ($at -gt 0) { $answers[$line.Substring(0, $at)] = $line.Substring($at + 1).Trim() }
    }
    Remove-Item -LiteralPath $script
    if (-not $answers.Contains('version')) { Problem 'python_failed' 'python' "$interpreter does not start" 'install Python again, or name another with -Python' }
}
if ($answers.Contains('version')) {
    Text 'python' $answers['version'] $interpreter
    Text 'python_path' $interpreter 'venv, conda, py, PATH'
    Text 'python_abi' $answers['abi'] $interpreter
    Flag 'python_headers' ($answers['headers'] -eq '1') $interpreter
    Text 'pip' $answers['pip'] 'its metadata'
    Text 'torch' $answers['torch'] 'its metadata'
    if ($answers['torch']) {
        Text 'torch_cuda' $answers['torch.cuda'] 'torch/version.py'
        Text 'torch_hip' $answers['torch.hip'] 'torch/version.py'
    }
    Text 'flash_attn' $answers['flash-attn'] 'its metadata'
    Text 'flash_attn_3' $answers['flash_attn_3'] 'its metadata'
    Text 'flash_attn_4' $answers['flash-attn-4'] 'its metadata'
    $triton = if ($answers['triton']) { $answers['triton'] } else { $answers['triton-windows'] }
    Text 'triton' $triton 'its metadata'
} else {
    Text 'python' '' 'not found'
    Text 'torch' '' 'no Python'
}

# ---- variables that change a build or a run
$variables = [ordered]@{}
foreach ($name in @('CUDA_HOME', 'CUDA_PATH', 'CUDA_VISIBLE_DEVICES', 'HIP_VISIBLE_DEVICES', 'TORCH_CUDA_ARCH_LIST', 'MAX_JOBS', 'NVCC_THREADS',
        'NVCC_APPEND_FLAGS', 'DISTUTILS_USE_SDK', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'PYTHONPATH', 'PYTHONHOME')) {
    $value = [Environment]::GetEnvironmentVariable($name)
    if ($null -ne $value) { $variables[$name] = $value }
}

# ---- out
$facts['gpus'] = @($gpus)
$facts['toolkits'] = @($toolkits)
$facts['env'] = $variables
$facts['origins'] = $origins
if ($problems.Count -gt 0) { $facts['problems'] = @($problems) }
$json = ConvertTo-Json -InputObject $facts -Depth 6
if ($Out) {
    $path = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Out)
    [System.IO.File]::WriteAllText($path, $json + "`n", (New-Object System.Text.UTF8Encoding $false))
} else {
    $json
}
